"""Finds values of columns that rewritten base files lack, or that readers by schema on read do not see: these readers
look for the columns of a base file by the schema of the instant that wrote it
(`InternalSchemaCache.getInternalSchemaByVersionId`, Hudi 1.2.0)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jobs.dataplane import stored_columns
from jobs.errors import HudiError, RefusedError
from jobs.format import schema_history
from jobs.format.file_names import parse_base_file_name
from jobs.hudi import merging
from jobs.hudi.hadoop import storage_of
from jobs.protocol import preflight
from jobs.services.checks.commits import rewrites
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.dataplane.stored_columns import StoredColumns
    from jobs.format.schema_history import Columns, SchemaHistory
    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Commit

Key = int | str
"""The id of a column by schema on read, or its name on a table without schema on read."""

_OLD_NAMES = (
    "Readers find no values in renamed columns. In columns that were added again they find the values of the dropped"
    " columns."
)


def misread(examined: Examined) -> Iterator[Finding]:
    """Finds base files of the latest slices that store columns under other names or types than readers expect. Also
    finds columns that were added under the name of a dropped or renamed column, and show the values of that column.
    Reads footers and such added columns, but only if schema on read has changed columns of the table."""
    history = merging.history_of(examined.table)
    if not history.changed():
        return
    if names := history.changed(types=False):
        yield from _forgotten(examined, max(names.values()))
    expected = _Expected(history, examined.commits)
    bases = {item.base_file: item for item in examined.listed_slices if item.base_file}
    paths = [path for path in bases if path.endswith(".parquet")]
    before = {path: newer for path in paths if (newer := expected.newer_namesakes(path))}
    storage = storage_of(examined.table)
    found = {}
    for each in stored_columns.of_files(examined.table, storage, paths, examined.context, before=before):
        wrong = [f"{name} (stored as {old})" for name, old in expected.under_other_names(each)]
        wrong += [f"{name} ({old} instead of {new})" for name, old, new in expected.of_other_types(each)]
        wrong += [f"{name} ({count} values of another column)" for name, count in each.older.items() if count]
        if wrong:
            path = f"{bases[each.path].partition}/{bases[each.path].base_name}".lstrip("/")
            found[path] = f"{path}: {', '.join(sorted(wrong))}"
    if found:
        yield Finding(
            "columns-misread",
            "Base files store columns under other names or types than readers expect",
            found,
            "Readers by schema on read find no values in these columns, or the values of another column. Readers fail"
            " at columns of another type, or find wrong values.",
            "A service rewrote the old columns after they had been renamed, changed, dropped or added. Read the old"
            " columns from these Parquet files, and upsert their values with schema on read; or restore a savepoint."
            " If only types differ, read the rows without schema on read, and upsert all of them.",
        )


def _forgotten(examined: Examined, version: int) -> Iterator[Finding]:
    """Finds renamed columns whose values readers do not find because a writer had no schema on read. The values are
    hidden as long as the latest commit is of such a writer. In base files that were rewritten after such a commit they
    are lost. `version` is the latest change of a name."""
    for problem in preflight.of_forgotten_columns(examined.table, examined.listed_slices):
        hint = f"{problem.hint} Let nothing be compacted or upserted before."
        yield Finding(problem.type, problem.title, {problem.detail: problem.detail}, _OLD_NAMES, hint)
    found = {
        f"{commit.write.instant} {group}": f"{commit.write.instant}: {'/'.join(group).lstrip('/')}"
        for commit in examined.commits
        if _is_after(commit.write.instant, version) and schema_history.LATEST not in commit.extra
        for group, before in commit.previous.items()
        if before.isdigit() and not _is_after(before, version) and _has_base_file(commit, group)
    }
    if found:
        yield Finding(
            "renamed-columns-lost",
            "Files with old columns were rewritten without schema on read",
            found,
            _OLD_NAMES,
            "A writer or a compaction without `hoodie.schema.on.read.enable=true` has done that. The files before still"
            " have the values until they are cleaned: restore a savepoint, or read them from these Parquet files and"
            " upsert them. Let nothing be cleaned until then.",
        )


def _is_after(instant: str, version: int) -> bool:
    return instant.isdigit() and int(instant) >= version


def _has_base_file(commit: Commit, group: Group) -> bool:
    partition, file_id = group
    return any(path.endswith(".parquet") for path in commit.files.get(partition, {}).get(file_id, ()))


def replaced(examined: Examined) -> Iterator[Finding]:
    """Finds clusterings and rescales whose files have fewer values in a column than the files that they replaced. All
    of these files must still exist (`commits.rewrites`), on a storage that Arrow knows. Reads footers."""
    existing = {f"{partition}/{name}".lstrip("/") for partition, names in examined.files.items() for name in names}
    pairs = [
        (commit, old, commit.rows)
        for commit, old in rewrites(examined)
        if old.keys() | commit.rows.keys() <= existing and sum(old.values()) == sum(commit.rows.values())
    ]
    table, root = examined.table, examined.table.base_path.rstrip("/")
    try:
        storage = storage_of(table)
    except RefusedError:
        return
    expected = _Expected(merging.history_of(table), examined.commits)

    def values(paths: Iterable[str]) -> dict[Key, int | None]:
        files = [f"{root}/{path}" for path in sorted(paths)]
        return expected.values(stored_columns.of_files(table, storage, files, examined.context))

    found = {}
    for commit, old, new in pairs:
        before, after = values(old), values(new)
        lost = [
            f"{name} ({left} for {count})"
            for key, name in expected.named(commit, before).items()
            if (count := before[key]) is not None and (left := after.get(key, 0)) is not None and left < count
        ]
        if lost:
            found[commit.write.instant] = f"{commit.write.instant}: {', '.join(sorted(lost))}"
    if found:
        yield Finding(
            "replacement-values-lost",
            "A replacement has fewer values in some columns than the file groups that it replaced",
            found,
            "Readers find no values where there were some.",
            "A service rewrote the files without some columns, or under other names. The replaced files still have the"
            " values: restore a savepoint, or read them from these Parquet files and upsert them. Let nothing be"
            " cleaned until then.",
        )


class _Expected:
    """The columns that readers expect in base files."""

    def __init__(self, history: SchemaHistory, commits: Iterable[Commit]) -> None:
        self._history = history
        self._of_commits = _of_commits(commits) if history.versions else {}

    def newer_namesakes(self, path: str) -> dict[str, int]:
        """Returns the columns that have the name of an older column, each with the instant that added it."""
        history = self._history
        named = [(name, history.since.get(number, 0)) for number, (name, _) in self._columns(path).items()]
        return {name: since for name, since in named if history.named_since.get(name, since) < since}

    def under_other_names(self, stored: StoredColumns) -> Iterator[tuple[str, str]]:
        """Yields the columns that the file stores under an older name only. Parts of such a column are left out."""
        columns = self._columns(stored.path)
        ids = {name: number for number, (name, _) in columns.items()}
        lost: set[str] = set()
        for number, (name, _) in sorted(columns.items(), key=lambda each: each[1]):
            if name in stored.values or any(name.startswith(f"{each}.") for each in lost):
                continue
            for old in sorted(self._history.names.get(number, set()) & stored.values.keys()):
                # A column that was given the old name before all rows of the file has the values itself.
                owner = ids.get(old)
                if owner is None or stored.earliest < self._history.since.get(owner, 0):
                    lost.add(name)
                    yield name, old
                    break

    def of_other_types(self, stored: StoredColumns) -> Iterator[tuple[str, str, str]]:
        """Yields the columns that the file stores with an older type, with both types."""
        for number, (name, kind) in sorted(self._columns(stored.path).items(), key=lambda each: each[1]):
            stored_kind = stored.kinds.get(name, "")
            if not schema_history.reads_as(stored_kind, kind) and any(
                schema_history.reads_as(stored_kind, old) for old in self._history.kinds.get(number, ())
            ):
                yield name, stored_kind, kind

    def values(self, files: Iterable[StoredColumns]) -> dict[Key, int | None]:
        """Returns the number of values in each column that readers find in these files, None if it is unknown."""
        found: dict[Key, int | None] = {}
        for each in files:
            columns = self._columns(each.path)
            ids: dict[str, Key] = {name: number for number, (name, _) in columns.items()}
            for name, count in each.values.items():
                if (key := ids.get(name) if columns else name) is not None:
                    sum_of_others = found.get(key, 0)
                    found[key] = None if count is None or sum_of_others is None else sum_of_others + count
        return found

    def named(self, commit: Commit, keys: Iterable[Key]) -> dict[Key, str]:
        """Returns which of these columns the table had at the commit, with their names."""
        instant = commit.write.instant
        if self._history.versions:
            columns = self._of_commits.get(instant) or self._history.at(int(instant))
            return {key: columns[key][0] for key in keys if isinstance(key, int) and key in columns}
        try:
            tops = {each["name"] for each in json.loads(commit.extra.get("schema") or '{"fields": []}')["fields"]}
        except (ValueError, KeyError, TypeError) as error:
            raise HudiError(f"the schema of {instant} is unreadable: {error!r}") from error
        return {key: str(key) for key in keys if str(key).partition(".")[0] in tops}

    def _columns(self, path: str) -> Columns:
        parsed = parse_base_file_name(path.rpartition("/")[2])
        if parsed is None or not parsed.instant.isdigit():
            return {}
        return self._of_commits.get(parsed.instant) or self._history.at(int(parsed.instant))


def _of_commits(commits: Iterable[Commit]) -> dict[str, Columns]:
    """Returns the columns that commits of the active timeline have in their metadata, by instant."""
    texts = {commit.write.instant: commit.extra.get(schema_history.LATEST) for commit in commits}
    try:
        known = {text: schema_history.columns_of(text) for text in {text for text in texts.values() if text}}
    except ValueError as error:
        raise HudiError(str(error)) from error
    return {instant: known[text] for instant, text in texts.items() if text}
