"""Checks of the counted rows (`Examined.counted`). Audit and diagnosis both make these checks, so that both can close
the incidents that come from them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.errors import RefusedError
from jobs.hudi import dangling_configs, hashing_config
from jobs.hudi.history import archived_among
from jobs.kinds.results import Cure
from jobs.protocol import preflight
from jobs.services.checks import bucket_number, buckets, record_keys
from jobs.services.checks.finding import Examined, Finding
from jobs.services.checks.row_counts import writers_of_misplaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Only `HoodieCatalogUtil.initPartitionBucketIndexMeta` (1.2.0) of Flink's writer stores these numbers in the table.
_OF_FLINK = (
    " But a Flink job may give partitions numbers of buckets (`hoodie.bucket.index.partition.expressions`) that the"
    " table does not have, because it was not created in a catalog of Hudi. Stop the job and remove this option first:"
    " otherwise the job writes each moved key a second time."
)


def keys(examined: Examined) -> Iterator[Finding]:
    """Finds keys that exist twice, rows that name another partition than the one of their file, and rows with a key
    that their columns do not make. Reads the key of every row."""
    found = examined.counted
    if counts := {each.path: f"{each.elsewhere} of '{each.path}'" for each in found if each.elsewhere}:
        yield Finding(
            "rows-in-wrong-partition",
            "Rows are in the folder of another partition than they name",
            counts,
            "A query of the partition misses them, and a query of the folder's partition returns rows that are not"
            " its own. A job that needs the rows of one partition may miss them, too.",
            "Somebody moved or changed files by hand, or gave a commit to the wrong partition. Read the rows by"
            " `_hoodie_partition_path` and `_hoodie_file_name`, write them again, and delete those in the wrong"
            " folder.",
        )
    if twice := {each.path: f"{each.duplicates} in '{each.path}'" for each in found if each.duplicates}:
        first = (
            "Rows are in wrong buckets, too: first run the `repair` that the finding `rows-in-wrong-bucket` names,"
            " which keeps the newest row of each key. If keys exist twice afterwards: decide"
            if any(each.misplaced for each in found)
            else "Decide"
        )
        yield Finding(
            "duplicate-keys",
            "Keys exist more than once in their partition",
            twice,
            "Readers see both rows; an update changes one of them.",
            f"{first} which row is right, and write the partition again without the other (`insert_overwrite`; with"
            " consistent hashing, a `repair` of that overwrite has to follow).",
        )
    yield from _of_forms(sum((Counter(each.forms) for each in found), Counter()))


def in_buckets(examined: Examined) -> Iterator[Finding]:
    """Finds rows in wrong buckets, and the commits that wrote them. Reads the key of every row. Raises RefusedError if
    the rows have no keys and the table has buckets."""
    table, rules = examined.table, examined.rules
    if rules is None:
        return
    refused = preflight.no_meta_fields(table)
    if refused:
        raise RefusedError(refused)
    counts = {each.path: f"{each.misplaced} in '{each.path}'" for each in examined.counted if each.misplaced}
    if not counts or table.hash_fields_not_in_key:
        return
    misplaced, rows = (sum(getattr(each, name) for each in examined.counted) for name in ("misplaced", "rows"))
    number, index = bucket_number.other_number(table, misplaced, rows), table.declared.index
    if number is not None and index is not None:
        yield Finding(
            "bucket-number-differs",
            "The table has another number of buckets than it is registered with",
            {"number": f"every row is in its bucket by {number}, and {misplaced} are not by {index.num_buckets}"},
            "Jobs that rewrite buckets are refused, and so is a repair, which would move the rows away from where their"
            " writers look for them.",
            bucket_number.advice(number, index.num_buckets),
        )
        return
    if dangling := dangling_configs.dangling(table):
        yield _beside_config(examined, min(dangling), counts)
        return
    if buckets.has_no_buckets(examined):
        yield Finding(
            "rows-in-wrong-bucket",
            "Rows are not in the bucket of their key",
            counts,
            "Writers with the registered index look for these rows elsewhere, and write their keys a second time.",
            "Do what the finding `file-ids-without-bucket` says, and then run an audit again.",
        )
        return
    by = writers_of_misplaced(table, rules, counts)
    of_flink = table.may_have_flink is not None and not hashing_config.is_in_force(table)
    known: set[str] = set() if of_flink else {commit.write.instant for commit in examined.commits}
    if not of_flink:
        known |= archived_among(table, {*by} - known)
    yield Finding(
        "rows-in-wrong-bucket",
        "Rows are not in the bucket of their key",
        {**counts, **{instant: f"written by {instant}" for instant in by}},
        "The next write of such a key adds a second row; a filter on the key may not find it (Hudi #13241).",
        "A writer had another number of buckets, other hash fields or another index. Give it the options of the"
        " table. A `repair` that names its commits moves their rows to their buckets, and keeps the newest row of each"
        " key, also of archived commits as far as the history has them."
        f" If no key exists twice, a `bucket_index` with `adopt` moves all rows.{_OF_FLINK if of_flink else ''}",
        Cure(kind=JobKind.REPAIR, params={"instants": [each for each in by if each in known]})
        if known & {*by}
        else None,
    )


def _beside_config(examined: Examined, config: str, counts: Mapping[str, str]) -> Finding:
    """Returns the finding for misplaced rows beside a config whose commit never completed. A repair puts the rules
    before the config in force again. Then the rows of a writer that has followed the config are misplaced."""
    table = examined.table
    earlier = hashing_config.rules_before(table, config)
    by = writers_of_misplaced(table, earlier[0], [each.path for each in examined.counted]) if earlier else []
    known = {commit.write.instant for commit in examined.commits}
    known |= archived_among(table, {*by} - known)
    instants = [each for each in by if each in known]
    return Finding(
        "rows-in-wrong-bucket",
        "Rows are not in the bucket of their key",
        {**counts, **{instant: f"written by {instant}" for instant in by}},
        "Writers with the registered index look for these rows elsewhere, and write their keys a second time.",
        "Writers have followed the config that the finding `hashing-config-dangling` names. Stop them. A `repair` that"
        " names their commits removes the config, moves their rows to the buckets of the rules before it, and keeps the"
        " newest row of each key."
        if by
        else "Do what the finding `hashing-config-dangling` says, and then run an audit again.",
        Cure(kind=JobKind.REPAIR, params={"instants": instants}) if instants else None,
    )


def hidden(examined: Examined) -> Iterator[Finding]:
    """Finds keys that exist but that a query with a filter does not find."""
    if missed := Counter(path for path, _ in examined.hidden_keys):
        yield Finding(
            "keys-hidden-by-statistics",
            "Queries with a filter do not find keys that exist",
            {path: f"{count} of the first and the last key of '{path}'" for path, count in missed.items()},
            "Hudi's data skipping leaves out files that have such rows.",
            "Read with `hoodie.enable.data.skipping=false`. If another finding names the statistics that are wrong, do"
            " what it says; otherwise build the metadata table anew.",
            Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
        )


def _of_forms(forms: Mapping[str, int]) -> Iterator[Finding]:
    """Yields a finding if a key does not belong to its row, or if there are several forms of keys, so that a row may
    exist under two keys. `forms` has the number of rows by form."""
    found = {}
    if number := forms.get(record_keys.OTHER):
        found[record_keys.OTHER] = f"{number} rows have a key that their columns do not make"
    if len(several := sorted(set(forms) - {record_keys.OTHER})) > 1:
        found["forms"] = "keys in several forms: " + ", ".join(f"{name} ({forms[name]} rows)" for name in several)
    if found:
        yield Finding(
            "record-keys-differ",
            "Rows have record keys that the table's key generator does not make",
            found,
            "The next upsert of such a row does not find it, and adds a second row.",
            "Writers used different key generators or different options of one, or a job changed the keys. Delete the "
            "rows with the wrong keys by `_hoodie_record_key`, and let all writers use the same options.",
        )
