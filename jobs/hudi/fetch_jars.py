"""Fills a folder with the jars that a worker needs (Hudi's bundle, and those for S3), for machines and images that
cannot fetch jars.

`python -m jobs.hudi.fetch_jars FOLDER`; workers get the folder by `GROUNDSKEEPER_JARS`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from jobs.hudi.session import S3A, start_session


def fetch(folder: Path) -> list[Path]:
    """Lets Spark fetch the jars into an empty cache, as a worker would, so that all of them are resolved together."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as ivy:
        start_session(master="local[1]", packages=[S3A], conf={"spark.jars.ivy": ivy}).stop()
        return [Path(shutil.copyfile(jar, folder / jar.name)) for jar in sorted(Path(ivy, "jars").glob("*.jar"))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for fetched in fetch(parser.parse_args().folder):
        print(fetched)
