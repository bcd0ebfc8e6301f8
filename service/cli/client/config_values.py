"""Values of configuration files: members as in the models of the API, references to variables of the environment, and
differences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, get_args, get_origin

import msgspec

from groundskeeper_client.generated.models import DEFAULTS
from groundskeeper_client.model import Model, described
from jobs.redaction import MASK
from service.cli.client.connection import Json
from service.cli.client.spelling import guess
from service.cli.client.yaml_file import FieldPath, YamlFile, path_text
from service.model.shown_url import shown_url

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}")
_PLACE = re.compile(r" - at `\$(?P<path>.*)`$")
_STEP = re.compile(r"\[(\d+)\]|\[\.\.\.\]|\.?([^.\[\]]+)")


def projected(value: Any, type_: Any) -> Any:
    """Returns the part of an answer that a request of this type would have. Members that have their default are left
    out."""
    model = _of(type_, Model)
    if isinstance(value, dict) and model is not None:
        members = {each.encode_name: each for each in msgspec.structs.fields(model) if each.encode_name in value}
        found = {name: projected(value[name], each.type) for name, each in members.items()}
        return {name: each for name, each in found.items() if not _is_default(each, _default(members[name], model))}
    if isinstance(value, list):
        return [projected(each, _item(type_)) for each in value]
    if isinstance(value, str) and _of(type_, datetime) is not None:
        with suppress(ValueError):
            # Times are normalized, because one moment can be written in several ways.
            return datetime.fromisoformat(value).astimezone(UTC).isoformat()
    return value


def changed_members(wanted: Json, live: Json, model: type[Model]) -> Json:
    """Returns the members that differ. A member that is left out counts as its default, or as empty."""
    defaults = DEFAULTS.get(model.__name__, {})
    names = [name for name in {**live, **wanted} if wanted.get(name) != live.get(name)]
    return {name: wanted[name] if name in wanted else defaults.get(name, type(live[name])()) for name in names}


def check(file: YamlFile, path: FieldPath, value: Any, model: type[Model], *, more: str) -> None:
    """Raises CommandError for a member that the model does not have, or that has a wrong type. `more` is the name of a
    further member, which is required."""
    if not isinstance(value, dict):
        raise file.wrong(path, "must be an object.")
    if not isinstance(value.get(more), str) or not value[more]:
        raise file.wrong((*path, more), "is missing, or is not a text.")
    _check_names(file, path, value, model, more)
    try:
        msgspec.convert({name: each for name, each in value.items() if name in _names(model)}, described(model))
    except msgspec.ValidationError as error:
        text = str(error)
        place = _PLACE.search(text)
        found = (*path, *parsed(place["path"])) if place else path
        said = _PLACE.sub("", text).replace("`", "")
        raise file.wrong(found, f"{said[:1].lower()}{said[1:]}.") from error


def parsed(field: str) -> FieldPath:
    """Returns the path of a value for a text such as `lock.options` or `types[0]`."""
    return tuple(int(each[1]) if each[1] else each[2] for each in _STEP.finditer(field) if each[1] or each[2])


def resolved(value: Any, file: YamlFile, path: FieldPath, unset: dict[FieldPath, str]) -> Any:
    """Returns the value with references replaced by variables of the environment. If a variable is not set, the value
    becomes the mask of a stored secret, and the name is added to `unset`."""
    if isinstance(value, dict):
        return {name: resolved(each, file, (*path, name), unset) for name, each in value.items()}
    if isinstance(value, list):
        return [resolved(each, file, (*path, number), unset) for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value
    missing = [each[2] for each in _REFERENCE.finditer(value) if each[2] and each[2] not in os.environ]
    if missing:
        unset[path] = missing[0]
        return MASK
    return _REFERENCE.sub(lambda each: each[1] or os.environ[each[2]], value)


def check_masks(file: YamlFile, path: FieldPath, wanted: Any, live: Any, unset: dict[FieldPath, str]) -> None:
    """Raises CommandError for a mask if the service has no secret stored for it."""
    if isinstance(wanted, dict):
        for name, each in wanted.items():
            check_masks(file, (*path, name), each, live.get(name) if isinstance(live, dict) else None, unset)
    elif isinstance(wanted, list):
        for number, each in enumerate(wanted):
            check_masks(file, (*path, number), each, None, unset)
    elif isinstance(wanted, str) and MASK in wanted and not (_is_masked(live) and wanted in (MASK, live)):
        why = f"the variable {unset[path]} is not set." if path in unset else "the value is a mask, not a secret."
        raise file.wrong(path, why)


def escaped(text: str) -> str:
    """Escapes a text, so that nothing in it refers to a variable."""
    return text.replace("${", "$${")


def with_stored_secrets(wanted: Any, live: Any) -> Any:
    """Returns the value with a mask wherever the service has a secret, which cannot be compared."""
    if _is_masked(live) and isinstance(wanted, str):
        # Only the secret part of an address is masked, and the rest can be compared.
        return live if live == MASK or wanted == MASK or shown_url(wanted) == live else wanted
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {name: with_stored_secrets(each, live.get(name)) for name, each in wanted.items()}
    return wanted


def _is_masked(live: Any) -> bool:
    return isinstance(live, str) and MASK in live


def differences(before: Any, after: Any, path: FieldPath = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yields the fields that differ, each with its value before and after; None stands for a missing value."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from differences(before.get(name), after.get(name), (*path, name))
    elif before != after:
        yield path_text(path), before, after


def _check_names(file: YamlFile, path: FieldPath, value: Any, type_: Any, more: str = "") -> None:
    model = _of(type_, Model)
    if isinstance(value, dict) and model is not None:
        members = {each.encode_name: each.type for each in msgspec.structs.fields(model)}
        for name, each in value.items():
            if name == more and name not in members:
                continue
            if name not in members:
                raise file.wrong((*path, name), f"is not known here.{guess(name, members)}")
            _check_names(file, (*path, name), each, members[name])
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_names(file, (*path, number), each, _item(type_))


def _names(model: type[Model]) -> set[str]:
    return {each.encode_name for each in msgspec.structs.fields(model)}


def _is_default(value: Any, default: Any) -> bool:
    return value == default or (not value and not default)


def _default(member: Any, model: type[Model]) -> Any:
    given = DEFAULTS.get(model.__name__, {}).get(member.encode_name)
    return member.default if given is None and isinstance(member.default, str) else given


def _item(type_: Any) -> Any:
    found = _of(type_, list)
    return get_args(found)[0] if found is not None and get_args(found) else None


def _of(type_: Any, wanted: type) -> Any:
    """Returns the first part of a type, which may be a union, that is of this class."""
    for part in (type_, *get_args(type_)):
        origin = get_origin(part) or part
        if isinstance(origin, type) and issubclass(origin, wanted):
            return part
    return None
