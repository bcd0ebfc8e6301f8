"""The details of a table that commands print: its declarations, and its state at the last poll."""

from __future__ import annotations

from datetime import timedelta

from jobs.format.clock_frame import spoken
from service.catalog.ownership import tag_words
from service.cli.client.connection import Json
from service.cli.client.output import Output, ago, compact
from service.model.formatting import count, duration, size

_SHORT_TYPES = {"MERGE_ON_READ": "MOR", "COPY_ON_WRITE": "COW"}


def show(out: Output, table: Json) -> None:
    writers, profile = table["writers"], table["profile"]
    out.pairs(
        [
            ("id", table["id"]),
            ("name", table["name"]),
            ("path", table["base_path"]),
            ("owner", table["owner"]),
            ("tags", ", ".join(tag_words(table["tags"])) or None),
            ("type", profile.get("table_type")),
            ("version", profile.get("table_version")),
            ("index", _index(table)),
            ("lock", table["lock"]["provider"]),
            ("lock wait", _lock_wait(table["lock"])),
            ("writers", _writers(writers)),
            ("readers", _readers(table["readers"])),
            ("options", compact(table["hudi_options"]) if table["hudi_options"] else None),
            ("clock", _clock(table["clock"])),
            ("incidents", incidents(table)),
            ("warnings", " ".join(profile.get("warnings") or ()) or None),
        ]
    )


def show_state(out: Output, state: Json) -> None:
    total, watch = state["total"], state["watch"]
    pending = [
        f"{each['action']} {each['requested_time']} {each['state']}"
        + (f" for {duration(each['age_seconds'])}" if each["age_seconds"] is not None else "")
        for each in state["pending"]
    ]
    out.say("")
    out.pairs(
        [
            ("last change seen", ago(watch["looked_at"])),
            ("poll error", watch["error"]),
            (
                "last commit",
                f"{state['last_commit']}, {ago(state['last_commit_at'])}" if state["last_commit"] else None,
            ),
            ("base files", f"{total['base_files']}, {size(total['base_bytes'])}"),
            ("log files", f"{total['log_files']}, {size(total['log_bytes'])}"),
            ("small files", f"{total['small_files']}, {size(total['small_bytes'])}"),
            ("partitions", state["num_partitions"]),
            ("buckets", _buckets(state)),
            ("rows in base files", total["rows"]),
            ("commits since", _since(state)),
            ("timeline", count(state["timeline_commits"], "commit")),
            ("metadata table", _metadata_table(state.get("metadata_table"))),
            ("pending", "; ".join(pending)),
        ]
    )


def show_outcome(out: Output, outcome: Json) -> None:
    cost, kept = outcome["cost"], outcome["kept"]
    wanted = [f"{name} {value:g}" for name, value in outcome["objective"].items() if value is not None]
    out.say("")
    out.pairs(
        [
            ("reads", outcome["reads"]["text"]),
            ("read overhead", cost and f"{cost['overhead']:.2f} times a read after a compaction ({cost['basis']})"),
            ("objective", ", ".join(wanted) if outcome["is_set"] else None),
            ("kept", kept and kept["text"]),
            ("missed", kept and kept["missed"] and f"{kept['missed']}, since {ago(kept['missed_since'])}"),
        ]
    )


def show_advice(out: Output, advice: Json) -> None:
    buckets = advice["buckets"]
    is_shown = advice["state"] not in ("none", "dismissed")
    words = [("advice", f"{advice['because']} ({advice['state']})" if is_shown else None)]
    out.pairs([*words, ("buckets", buckets and buckets["text"])])


def _metadata_table(found: Json | None) -> str | None:
    if not found:
        return None
    commits = f"{count(found['commits'], 'commit')} since its last compaction"
    return f"{commits}, {count(found['log_files'], 'log file')}, {size(found['log_bytes'])}"


def _since(state: Json) -> str:
    return ", ".join(f"{kind} {state[f'since_{kind}']['commits']}" for kind in ("compaction", "cleaning", "clustering"))


def type_of(table: Json) -> str:
    type_ = str(table["profile"].get("table_type", ""))
    return _SHORT_TYPES.get(type_, type_)


def short_index(table: Json) -> str:
    return "bucket" if table["index"] else "-"


def _index(table: Json) -> str | None:
    """Returns the index with which the table was created. An expansion changes the number of buckets in force
    (`buckets`), but not this index."""
    index = table["index"]
    if index:
        return f"bucket by {', '.join(index['hash_fields'])}, {index['num_buckets']} at creation"
    layout = table["profile"].get("bucket_layout") or {}
    return "bucket, consistent hashing" if layout.get("kind") == "consistent_hashing" else None


def _buckets(state: Json) -> str | None:
    """Returns the number of buckets. For consistent hashing this is the number in the largest partition."""
    if state["num_buckets"]:
        return str(state["num_buckets"])
    numbers = [each["num_buckets"] for each in state["partitions"][:1]]
    return f"{numbers[0]} in the largest partition" if any(numbers) else None


def _lock_wait(lock: Json) -> str:
    """Returns how long a job waits for the lock."""
    return "the service's setting" if lock["wait_seconds"] is None else f"{lock['wait_seconds']:g} s"


def _clock(clock: Json | None) -> str | None:
    """Returns words for the offset of the writers' clock from UTC; None if it is not known."""
    if clock is None or clock["utc_offset_seconds"] is None:
        return None
    words = spoken(timedelta(seconds=clock["utc_offset_seconds"]))
    found = f"{words} ({round(clock['ahead_seconds']):+d} s beside its zone), by {count(clock['samples'], 'commit')}"
    other, back = clock["disagreement"], clock.get("set_back")
    if other is None and back is not None:
        return f"{found}; one went back by {duration(back['seconds'])} before {back['instant']}"
    if other is None:
        return found
    one, two = (spoken(timedelta(seconds=other[name])) for name in ("one_seconds", "other_seconds"))
    return f"{found}; writers disagree, {one} and {two}"


def incidents(table: Json) -> str:
    counts = table["incidents"]
    return ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "none"


def _readers(readers: Json) -> str | None:
    reads = readers["reads_per_day"]
    parts = [
        readers["hudi_version"] and f"Hudi {readers['hudi_version']}",
        reads is not None and f"{reads:g} reads a day",
    ]
    return ", ".join(part for part in parts if part) or None


def _writers(writers: Json) -> str:
    detected = [f"{engine} (detected)" for engine in writers["detected"] if engine not in (writers["engines"] or ())]
    version = "stopped" if writers["stopped"] else f"Hudi {writers['hudi_version']}" if writers["hudi_version"] else ""
    return ", ".join(part for part in (version, *(writers["engines"] or ()), *detected) if part) or "not declared"
