"""naming._identity: a namespace, a name, other names of the same thing -> plain values that every part of naming hands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SymlinkType = Literal["TABLE", "LOCATION", "FORMER"]


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """What makes a dataset one dataset: OpenLineage's namespace and name.

    >>> str(Identity("postgres://db:5432", "shop.public.orders"))
    'postgres://db:5432/shop.public.orders'
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Symlink:
    """Another identity of the same dataset: its catalog name (TABLE), where else it is reached (LOCATION).

    FORMER is the name by which another tool knows it. Such a name need not be its alone, so it makes no two one.
    """

    namespace: str
    name: str
    type: SymlinkType = "TABLE"

    @property
    def identity(self) -> Identity:
        """The identity this symlink stands for."""
        return Identity(self.namespace, self.name)


@dataclass(frozen=True, slots=True, order=True)
class Dataset:
    """A dataset as a capture reports it: its identity and the other names it goes by.

    >>> Dataset("s3://lake", "orders", (Symlink("hive://ms:9083", "shop.orders"),)).identity
    Identity(namespace='s3://lake', name='orders')
    """

    namespace: str
    name: str
    symlinks: tuple[Symlink, ...] = ()

    @property
    def identity(self) -> Identity:
        """The identity under which the dataset is known first."""
        return Identity(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
