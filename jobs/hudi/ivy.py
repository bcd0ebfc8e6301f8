"""Ivy, with which Spark fetches packages: its repositories, and its cache after a failed attempt."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr

# Spark's own chain (`SparkSubmitUtils.createRepoResolvers`) without its first member, the Maven repository of the user
# on this machine. The resolvers keep Spark's names, so that Ivy's cache stays usable. If no root is given, the first
# one is Maven's own repository.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="groundskeeper"/>
  <resolvers>
    <chain name="groundskeeper" returnFirst="true">
      <ibiblio name="central" m2compatible="true"{root}/>
      <ibiblio name="spark-packages" m2compatible="true" root={packages}/>
    </chain>
  </resolvers>
</ivysettings>
"""
# Spark reads the same variable.
_REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"
_SPARK_PACKAGES = "https://repos.spark-packages.org/"
_JAR = re.compile(r'<artifact [^>]*type="(?:jar|bundle)"')


def write_settings(file: Path) -> None:
    """Writes settings that make Ivy ignore the user's Maven repository on this machine. That repository may have a POM
    without its jar. Ivy would take such an artifact for found, and remember that."""
    given = os.environ.get(_REPOSITORY)
    text = _SETTINGS.format(
        root=f" root={quoteattr(given)}" if given else "", packages=quoteattr(given or _SPARK_PACKAGES)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def forget_incomplete(folder: Path) -> list[str]:
    """Removes modules without a jar from Ivy's cache; returns their names. `folder` is the value of
    `spark.jars.ivy`."""
    found = []
    for metadata in _cached(folder):
        revision = metadata.name.removeprefix("ivy-").removesuffix(".xml")
        module = metadata.parent
        has_jar = any(module.glob(f"*/{module.name}-{revision}.jar"))
        with suppress(OSError):
            if has_jar or not _JAR.search(metadata.read_text(errors="replace")):
                continue
            for each in (metadata, Path(f"{metadata}.original"), module / f"ivydata-{revision}.properties"):
                each.unlink(missing_ok=True)
            found.append(f"{module.parent.name}:{module.name}:{revision}")
    return found


def _cached(folder: Path) -> Iterator[Path]:
    return (folder / "cache").glob("*/*/ivy-*.xml")
