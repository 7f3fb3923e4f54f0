"""pipeline.sinks._directory: a directory in any filesystem Spark knows <-> small files, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Directory:
    """A directory, through Hadoop's filesystems: local, HDFS, object stores."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(path)
        self._fs: Any = self._root.getFileSystem(spark._jsc.hadoopConfiguration())

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def names(self, inside: str) -> list[str]:
        """The files and directories there."""
        path = self._path(inside)
        if not self._fs.exists(path):
            return []
        return sorted(each.getPath().getName() for each in self._fs.listStatus(path))

    def exists(self, name: str) -> bool:
        """Whether it is there."""
        return bool(self._fs.exists(self._path(name)))

    def read(self, name: str) -> bytes:
        """A small file."""
        stream = self._fs.open(self._path(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, body: bytes) -> None:
        """A small file, whole or not at all: written beside and moved into place."""
        target, beside = self._path(name), self._path(f"{name}.tmp")
        stream = self._fs.create(beside, True)
        try:
            stream.write(bytearray(body))
            stream.hsync()
        finally:
            stream.close()
        if not self._fs.rename(beside, target):  # it is there already, or no rename onto a file
            self._fs.delete(target, False)
            self._fs.rename(beside, target)

    def delete(self, name: str) -> None:
        """A file, or a directory with what is in it."""
        self._fs.delete(self._path(name), True)

    def size(self, name: str) -> int:
        """Bytes of all files below."""
        path = self._path(name)
        return int(self._fs.getContentSummary(path).getLength()) if self._fs.exists(path) else 0
