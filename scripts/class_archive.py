"""class_archive: the classes of this environment's Spark -> an archive that its JVMs map into memory, instead of loading each class anew.

python scripts/class_archive.py          make it, where it is missing
python scripts/class_archive.py --where  where it is, or would be

The tests start hundreds of JVMs that live for seconds, and spend more than half of their CPU on reading, checking and linking the same
classes. The archive belongs to one environment, one Spark and one Java, and is named by them; a JVM to which it does not fit leaves it
aside without a word, so that only time can be lost by it, never a result.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

# Spark and Kafka live for a minute in a test: what the second compiler makes of their code comes too late, and takes both cores.
# The first compiler alone is given a fifth of the usual room for code, which Delta fills: then nothing more is compiled at all
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
_QUIET = "-Xlog:cds=off,cds+dynamic=off"
_TRAINING = """
import sys
from pyspark.sql import SparkSession, Window, functions as f
folder = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.sql.warehouse.dir", folder + "/warehouse").config("spark.sql.shuffle.partitions", "2").getOrCreate()
rows = spark.range(20).selectExpr("id", "id % 3 AS k", "CAST(id AS STRING) AS s", "array(id, 1) AS many", "CAST(id AS DECIMAL(9, 2)) AS d")
for kind in ("parquet", "json", "csv", "orc"):
    flat = rows.drop("many") if kind == "csv" else rows
    flat.write.option("header", True).format(kind).save(f"{folder}/{kind}")
    spark.read.option("header", True).format(kind).load(f"{folder}/{kind}").where("k IS NOT NULL").groupBy("k").agg(f.count("*"), f.max("s")).collect()
rows.write.partitionBy("k").saveAsTable("kept")
rows.createOrReplaceTempView("seen")
spark.sql("INSERT INTO kept SELECT id, s, many, d, k FROM seen")
spark.sql("SELECT k, sum(d) AS total FROM kept JOIN (SELECT id AS i FROM seen) ON i = id GROUP BY ROLLUP (k) ORDER BY total").collect()
rows.withColumn("place", f.row_number().over(Window.partitionBy("k").orderBy("id"))).withColumn("one", f.explode("many")).collect()
rows.select(f.udf(lambda text: text + "!")("s")).collect()
spark.createDataFrame([(1, "a")], "n INT, t STRING").unionByName(spark.createDataFrame([(2, "b")], "n INT, t STRING")).distinct().collect()
query = spark.readStream.schema(rows.schema).parquet(f"{folder}/parquet").writeStream.trigger(availableNow=True).option(
    "checkpointLocation", f"{folder}/checkpoint").foreachBatch(lambda batch, number: batch.count() and None).start()
query.awaitTermination()
jvm = spark.sparkContext._gateway.proc
spark.stop()
jvm.stdin.close()
jvm.wait()
"""


def path() -> Path | None:
    """Where the archive of this environment is or would be; nowhere, where there is no Spark or no Java."""
    java = shutil.which(
        "java", path=str(Path(os.environ["JAVA_HOME"], "bin")) if os.environ.get("JAVA_HOME") else None
    )
    if java is None or importlib.util.find_spec("pyspark") is None:
        return None
    # the release stands beside the program, and is read hundreds of times quicker than a JVM is started
    told = Path(java).resolve().parents[1] / "release"
    release = dict(
        line.replace('"', "").split("=", 1) for line in told.read_text().splitlines() if "=" in line
    )
    name = f"spark-{version('pyspark')}-java-{release.get('JAVA_RUNTIME_VERSION') or release['JAVA_VERSION']}"
    return Path(sys.prefix, "classes", f"{name}.jsa")


def options() -> str:
    """What a JVM that does not live for long is best told, as JDK_JAVA_OPTIONS."""
    archive = path()
    if archive is None or not archive.exists():
        return _SHORT_LIVED
    return f"{_SHORT_LIVED} {_QUIET} -XX:SharedArchiveFile={archive}"


def make(archive: Path) -> None:
    """Run a little of everything, and have the JVM write down what it had loaded when it ends."""
    archive.parent.mkdir(exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _TRAINING, folder],
            cwd=folder,
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": f"{_SHORT_LIVED} -Xlog:disable -XX:ArchiveClassesAtExit={unfinished}",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
            },
            capture_output=True,
            text=True,
        )
    if done.returncode or not unfinished.exists():
        unfinished.unlink(missing_ok=True)
        print(f"without an archive of Spark's classes, tests take longer: {done.stderr[-500:]}")
        return
    unfinished.rename(archive)


def main() -> int:
    """Make it, or tell where it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--where", action="store_true")
    asked = parser.parse_args()
    archive = path()
    if asked.where or archive is None:
        print(archive or "nowhere: it needs Java and pyspark")
    elif not archive.exists():
        print(f"making an archive of Spark {version('pyspark')}'s classes")
        make(archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
