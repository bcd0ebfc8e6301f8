"""Fetches from Maven the jars of servers that tests start."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pyspark

from jobs.hudi.java import CACHE, chosen_java

JARS_OF_SPARK = Path(pyspark.__file__).parent / "jars"


def java() -> list[str]:
    """Returns the Java of jobs, and its options."""
    home, options = chosen_java()
    return [str(home / "bin" / "java"), *options.split()]


def class_path(group: str, name: str, version: str, *, alone: bool = False) -> str:
    """Returns the class path of an artifact with its dependencies, or `alone`. The first call on a machine fetches them
    by PySpark's Ivy."""
    [ivy] = JARS_OF_SPARK.glob("ivy-*.jar")
    folder = CACHE / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    found = folder / f"{name}-{version}.class-path"
    with (folder / "fetching.lock").open("w") as file:
        # Two concurrent processes would damage Ivy's cache.
        fcntl.flock(file, fcntl.LOCK_EX)
        if not found.exists() or not all(Path(jar).exists() for jar in found.read_text().strip().split(":")):
            unfinished = found.with_suffix(".unfinished")
            command = [*java(), "-Xmx256m", "-jar", ivy, "-cache", folder / "ivy", "-cachepath", unfinished]
            command += ["-confs", "default", "-dependency", group, name, version]
            command += ["-notransitive"] if alone else []
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
            unfinished.replace(found)
    return found.read_text().strip()
