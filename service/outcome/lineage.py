"""Counts reads of tables by the OpenLineage events of the programs that read them
(https://openlineage.io/spec/2-0-2)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sqlalchemy import Connection

from jobs.storage.location import plain
from service.catalog import table_store
from service.db.engine import writing
from service.delivery import open_lineage, outbox
from service.events.database import Database
from service.events.tally import Count
from service.outcome import read_store
from service.outcome.reads import ReadSource

OWN_PRODUCER = open_lineage.PRODUCER
"""The producer of this service's own events. Jobs of this producer do not count as readers."""

DATASETS = "lineage_datasets"
"""The name of the counters of runs' inputs. One counts registered tables, another one all other inputs."""

# Catalogs that may have Hudi tables. Other catalogs are ignored, because a table of a database server may have the same
# name as a registered table.
_CATALOGS = {"hive", "arn", "trino", "presto", "awsathena", "thrift", "hudi", "unitycatalog"}
_SCHEMES = {"s3": "s3a", "s3n": "s3a"}


@dataclass(frozen=True)
class Dataset:
    """A dataset of an event. `symlinks` are its other names, each with its namespace."""

    namespace: str
    name: str
    symlinks: Sequence[tuple[str, str]] = ()

    @property
    def path(self) -> str:
        """The canonical path, if the dataset is in a storage."""
        return path_of(self.namespace, self.name)

    @property
    def paths(self) -> list[str]:
        return [self.path, *(path_of(*each) for each in self.symlinks)]

    @property
    def names(self) -> list[str]:
        """The names in catalogs. Each name also appears without the catalog, and without catalog and database."""
        given = [(self.namespace, self.name), *self.symlinks]
        found = [name for namespace, name in given if urlsplit(namespace).scheme in _CATALOGS]
        return [each for name in found for each in (name, name.rpartition(".")[2])]


@dataclass(frozen=True)
class Received:
    """The outcome of an event: how many tables had a read counted, how many had been counted for the same run before,
    and how many datasets are not registered tables."""

    counted: int = 0
    repeated: int = 0
    unknown: int = 0


@dataclass
class _Matches:
    ids: set[str] = field(default_factory=set)
    unknown: int = 0


def receive(database: Database, run_id: str, inputs: Sequence[Dataset]) -> Received:
    """Counts a read of each registered table among the inputs of a run, once for each run. The time of the event is
    ignored, because clocks of others may be wrong."""
    if not inputs:
        return Received()
    now = database.clock()
    run = hashlib.sha256(run_id.encode()).hexdigest()[:32]
    with writing(database.engine) as connection:
        found = _matches(connection, inputs)
        counted = read_store.count_run(connection, run, found.ids, ReadSource.LINEAGE, now)
        counts = [Count(DATASETS, ("registered",), len(found.ids)), Count(DATASETS, ("unknown",), found.unknown)]
        outbox.count(connection, counts)
    return Received(counted, len(found.ids) - counted, found.unknown)


def path_of(namespace: str, name: str) -> str:
    """Returns the canonical path of a dataset by OpenLineage's naming of storage: the namespace is `file` or has the
    scheme and the host."""
    if "://" not in namespace:
        return plain(name) if name.startswith("/") or "://" in name else ""
    scheme, _, host = namespace.partition("://")
    return plain(f"{_SCHEMES.get(scheme, scheme)}://{host.rstrip('/')}/{name.lstrip('/')}")


def _matches(connection: Connection, inputs: Iterable[Dataset]) -> _Matches:
    """Finds tables by their paths, or else by their names in a catalog. If several tables have a name, it finds
    none."""
    each_once = list(dict.fromkeys(inputs))
    by_path = table_store.find_all(connection, {path for each in each_once for path in each.paths if path})
    by_name: defaultdict[str, set[str]] = defaultdict(set)
    for table_id, name in table_store.named(connection, {name for each in each_once for name in each.names}):
        by_name[name].add(table_id)
    found = _Matches()
    for each in each_once:
        ids = {by_path[path] for path in each.paths if path in by_path}
        if not ids:
            ids = next((by_name[name] for name in each.names if len(by_name[name]) == 1), set())
        found.ids |= ids
        found.unknown += not ids
    return found
