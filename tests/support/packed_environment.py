"""What a worker sends to executors whose machine has neither our packages nor Hudi: an archive and jars."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make(folder: Path, *more: str) -> Path:
    """Makes a Python environment with exactly the packages that the guide tells users to install, and with `more`, and
    returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = (folder / "lib").glob("python*/site-packages")
    for name in {*_packages(), *more}:
        (packages / name).symlink_to(Path(sysconfig.get_path("purelib"), name))
    return folder / "bin" / "python"


def pack(folder: Path) -> Path:
    """Returns an archive of the guide's environment."""
    make(folder / "packed")
    imports = [folder / "packed" / "bin" / "python", "-I", "-c", "import pyarrow, jobs"]
    ran = subprocess.run(imports, cwd=folder, capture_output=True, text=True)
    assert "No module named 'jobs'" in ran.stderr, ran.stderr
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        for path in sorted((folder / "packed").iterdir()):
            file.add(path, path.name)
    return archive


def hudi_jars(spark: SparkSession, folder: Path) -> Path:
    """Copies Hudi's bundle into the folder, as `jobs.hudi.fetch_jars` does, and returns the folder."""
    for path in jars_of(spark):
        if "hudi" in path.name:
            shutil.copyfile(path, folder / path.name)
    return folder


def _packages() -> set[str]:
    """Returns the files and folders of the guide's packages and their requirements in the tests' environment."""
    [line] = re.findall(r"environment/bin/pip install (.*)", Path(".docs/spark-clusters.md").read_text())
    wanted, names, found = [Requirement(each) for each in line.split() if each != "venv-pack"], set(), set()
    while wanted:
        requirement = wanted.pop()
        if requirement.name in names or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        names.add(requirement.name)
        distribution = metadata.distribution(requirement.name)
        assert requirement.specifier.contains(distribution.version), requirement
        wanted += [Requirement(each) for each in distribution.requires or ()]
        found |= {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
    return found
