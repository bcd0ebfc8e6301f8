"""The changes that give the service the configuration of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from jobs.redaction import MASK
from service.cli.client import config_values
from service.cli.client.config_sections import SECTIONS, Live, Section
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.spelling import guess
from service.cli.client.yaml_file import FieldPath, YamlFile
from service.model.shown_url import shown_url


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(frozen=True)
class Wanted:
    """An object of the file. `members` has the values of variables, `written` has the references to variables instead.
    `unset` has the variables that are not set."""

    path: FieldPath
    key: str
    members: Json
    written: Json
    unset: dict[FieldPath, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    section: Section
    action: Action
    wanted: Wanted | None
    live: Live | None

    @property
    def title(self) -> str:
        if self.wanted is not None:
            return str(self.wanted.written[self.section.key])
        return shown_url(self.live.key) if self.live else ""

    def fields(self) -> list[dict[str, Any]]:
        """Returns the fields that differ. Values of variables are shown as references."""
        before = {} if self.live is None else self.live.members
        if self.wanted is None:
            return []
        found = config_values.differences(before, _comparable(self.section, self.wanted, self.live, shown=True))
        return [{"field": name, "before": old, "after": new} for name, old, new in found]

    def to_json(self) -> Json:
        return {"kind": self.section.name, "name": self.title, "action": self.action.value, "fields": self.fields()}


@dataclass(frozen=True)
class Choices:
    """The options of `apply`. If `prunes` is set, objects that the file lacks are deleted, but only of kinds that the
    file has. If `sends_secrets` is set, secrets are sent even where the service already has one, because stored secrets
    cannot be compared."""

    prunes: bool = False
    sends_secrets: bool = False


def wanted_of(file: YamlFile) -> dict[Section, list[Wanted]]:
    """Returns the objects of the file by section. Raises CommandError for the first object that is not valid."""
    if not isinstance(file.value, dict):
        raise file.wrong((), "the document must be an object, with the kinds " + ", ".join(_BY_NAME) + ".")
    for name in file.value:
        if name not in _BY_NAME:
            raise file.wrong((name,), f"is no kind; the kinds are {', '.join(_BY_NAME)}.{guess(name, _BY_NAME)}")
    return {
        section: list(_objects(file, section, file.value[section.name]))
        for section in SECTIONS
        if section.name in file.value
    }


def changes(
    service: Connection, file: YamlFile, wanted: Mapping[Section, Collection[Wanted]], choices: Choices
) -> list[Change]:
    """Returns the changes in the order in which they have to be made."""
    found, removed = [], []
    for section, objects in wanted.items():
        live = _by_key(file, section, section.found(service))
        for each in objects:
            here = live.pop(each.key, None)
            members = here.members if here else {}
            config_values.check_masks(file, each.path, each.members, members, each.unset)
            is_changed = here is None or _comparable(section, each, here) != members
            if is_changed or (choices.sends_secrets and _has_secret(each, members)):
                is_new = here is None or (section.is_part and not members)
                found.append(Change(section, Action.CREATE if is_new else Action.CHANGE, each, here))
        if choices.prunes:
            # A table's own policy without settings does not exist, so it need not be deleted.
            rest = [each for each in live.values() if each.members or not section.is_part]
            removed += [Change(section, Action.DELETE, None, each) for each in rest]
    return [*found, *reversed(removed)]


def carry_out(service: Connection, file: YamlFile, change: Change, choices: Choices) -> None:
    """Makes one change, if the object has not changed since it was read. Otherwise raises CommandError."""
    section, live = change.section, change.live
    if live is not None:
        seen = live.members
        live = section.read_again(service, live)
        if live.members != seen:
            raise CommandError.of(ExitCode.FAILED, "The object has changed meanwhile", hint="Repeat the command.")
    elif section.is_part and change.wanted is not None:
        # An earlier change may have created the object of which this one is a part.
        live = next((each for each in section.found(service) if each.key == change.wanted.key), None)
    if change.wanted is None:
        assert live is not None
        service.send(section.remove(live))
        return
    members: Json = change.wanted.members
    if live is not None and not choices.sends_secrets:
        members = config_values.with_stored_secrets(members, live.members)
    try:
        service.send(section.put({section.key: change.wanted.key, **members}, live))
    except CommandError as error:
        if not (errors := error.document.get("errors")):
            raise
        path = (*change.wanted.path, *config_values.parsed(errors[0]["field"]))
        detail = str(file.wrong(path, errors[0]["message"]).document["detail"])
        raise CommandError(error.code, {**error.document, "detail": detail}) from error


def _objects(file: YamlFile, section: Section, items: Any) -> Iterator[Wanted]:
    if not isinstance(items, list):
        raise file.wrong((section.name,), "must be a list.")
    keys: set[str] = set()
    for number, item in enumerate(items):
        path: FieldPath = (section.name, number)
        config_values.check(file, path, item, section.body, more=section.key)
        unset: dict[FieldPath, str] = {}
        members = config_values.resolved(item, file, path, unset)
        key = str(members.pop(section.key))
        key = key.rstrip("/") or key
        if (name := unset.get((*path, section.key))) is not None:
            raise file.wrong((*path, section.key), f"the variable {name} is not set.")
        if key in keys:
            raise file.wrong((*path, section.key), "the file has this object twice.")
        keys.add(key)
        if not section.is_level:
            members = config_values.projected(members, section.body)
        yield Wanted(path, key, members, item, unset)


def _by_key(file: YamlFile, section: Section, found: Iterator[Live]) -> dict[str, Live]:
    live: dict[str, Live] = {}
    for each in found:
        if each.key in live:
            message = f"the service has two with the same {section.key}: {live[each.key].id} and {each.id}."
            raise file.wrong((section.name,), message)
        live[each.key] = each
    return live


def _comparable(section: Section, wanted: Wanted, live: Live | None, *, shown: bool = False) -> Json:
    """Returns the wanted members for a comparison, with masks in place of secrets that the service has stored."""
    members: Json = wanted.members
    if shown:
        written = {name: each for name, each in wanted.written.items() if name != section.key}
        members = _with_references(members, written)
    if live is None:
        return members
    kept = {name: each for name, each in live.members.items() if name in section.kept and name not in members}
    compared: Json = config_values.with_stored_secrets({**members, **kept}, live.members)
    return compared


def _with_references(value: Any, written: Any) -> Any:
    if isinstance(value, dict) and isinstance(written, dict):
        return {name: _with_references(each, written.get(name)) for name, each in value.items()}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return [_with_references(*both) for both in zip(value, written, strict=True)]
    return written if isinstance(written, str) and "${" in written else value


def _has_secret(wanted: Wanted, live: Json) -> bool:
    """Returns whether the file has a value where the service has a stored secret."""
    masked = replace(wanted, members=config_values.with_stored_secrets(wanted.members, live)).members
    return MASK in str(masked) and masked != wanted.members


_BY_NAME = {section.name: section for section in SECTIONS}
