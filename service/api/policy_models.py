"""Models of policies, decisions and pauses.

A level of a policy has only the members that differ from the weaker levels, so requests are typed dictionaries without
defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from types import new_class
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, get_args, get_type_hints
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticKnownError
from typing_extensions import TypedDict

from jobs.contract import JobKind
from jobs.kinds.parameters import Spec
from jobs.kinds.registry import KINDS
from jobs.kinds.words import NO_NUL
from service.api.answers import Shown
from service.api.params import PrefixOfPolicy, as_model
from service.api.requests import SOME_TEXT, TIME_OF_DAY, Request, Word, error_of_number
from service.api.structs import made
from service.policies.objective import AdviceSettings, BudgetSettings, ObjectiveSettings
from service.policies.policy import SECTIONS, PatternPolicy, Pause, Policy
from service.policies.precedence import Effective
from service.policies.settings import GIB, Section
from service.scheduling.policy_preview import ChangedSetting


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("must be a time zone of the IANA database, such as Europe/Berlin") from error
    return name


TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_check_zone)]
TimeOfDay = Annotated[str, StringConstraints(pattern=TIME_OF_DAY)]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class _Section(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way


class WindowIn(TypedDict):
    """A time window. It opens on `days`, or every day if there are none. An `end` that is not after `start` is on the
    next day."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way

    start: Annotated[TimeOfDay, Field(description="Time of day at which the window opens", examples=["22:00"])]
    end: Annotated[
        TimeOfDay,
        Field(
            description="Time of day at which the window closes; the next day, unless later than `start`",
            examples=["04:30"],
        ),
    ]
    days: NotRequired[
        Annotated[
            list[Day],
            Field(
                max_length=7, description="Days on which the window opens; all if left out", examples=[["sat", "sun"]]
            ),
        ]
    ]


_DEFAULTS = Policy().to_json()
_ABOUT: Mapping[type[Section], tuple[str, dict[str, Any]]] = {
    ObjectiveSettings: (
        "Limits on the cost of reads and storage, which determine when jobs run",
        {"read_overhead": 1.2},
    ),
    BudgetSettings: ("Limit on the cost of the jobs of all tables of a pattern in a day", {"gb_hours_per_day": 20}),
    AdviceSettings: ("Whether advice about thresholds is applied, and how costly reads may become", {"mode": "auto"}),
}


def _general(name: str) -> Any:
    """Returns the type of a policy's member that applies to all kinds of jobs."""
    hint = get_type_hints(Policy, include_extras=True)[name]
    own = {"time_zone": TimeZone, "windows": list[WindowIn]}.get(name)
    return _with_default(as_model(Annotated[own, *get_args(hint)[1:]] if own else hint), _DEFAULTS[name])


def _member(name: str) -> Any:
    """Returns the type of a policy's member that is an object of settings, such as those of a kind."""
    section = _section(SECTIONS[name])
    if about := _ABOUT.get(SECTIONS[name]):
        return Annotated[section, Field(description=about[0], examples=[about[1]])]
    policy = KINDS[JobKind(name)].policy
    assert policy is not None
    return Annotated[section, Field(description=policy.summary, examples=[dict(policy.example)])]


def _section(settings: type[Section]) -> Any:
    own = get_type_hints(settings, include_extras=True)
    params = get_type_hints(settings.params, include_extras=True)
    defaults = next(_DEFAULTS[name] for name, section in SECTIONS.items() if section is settings)
    members = {
        each.name: _with_default(
            as_model(_bounded(own[each.name], params.get(each.name)), stored=True), defaults[each.name]
        )
        for each in dataclasses.fields(settings)  # type: ignore[arg-type]
    }
    return new_class(
        settings.__name__.replace("Settings", "PolicyIn"),
        (_Section,),
        {"total": False},
        lambda body: body.update(__annotations__=members),
    )


def _with_default(member: Any, default: Any) -> Any:
    """Returns the type with the service's default as `x-default` in the document. The keyword `default` would be wrong,
    because a member that is left out comes from weaker levels."""

    def is_number_if_it_must(value: Any) -> Any:
        if error := error_of_number(value, member):
            raise PydanticKnownError(error)
        return value

    return Annotated[member, BeforeValidator(is_number_if_it_must), Field(json_schema_extra={"x-default": default})]


def _bounded(setting: Any, param: Any) -> Any:
    """Returns the type of a setting. If the setting declares no bounds, it has the type of the job's parameter with the
    same name. If it declares no text, it has the text of that parameter."""
    base, *specs = get_args(setting) if hasattr(setting, "__metadata__") else (setting,)
    if param is None or any(isinstance(each, Spec) and each.bounds().keys() - {"description"} for each in specs):
        return setting
    its_base, *bounds = get_args(param) if hasattr(param, "__metadata__") else (param,)
    of_job = specs or [Spec(each.description) for each in bounds if isinstance(each, Spec)]
    may_be_null, its_may = (type(None) in get_args(each) for each in (base, its_base))
    if may_be_null and not its_may:
        return Annotated[param | None, *of_job]
    if its_may and not may_be_null:
        (its_base,) = (each for each in get_args(its_base) if each is not type(None))
    return Annotated[its_base, *bounds, *of_job]


if TYPE_CHECKING:

    class PolicyIn(_Section): ...

else:
    _GENERAL = ("paused", "priority", "worker_group", "timeout_seconds", "time_zone", "windows")
    PolicyIn = new_class(
        "PolicyIn",
        (_Section,),
        {"total": False},
        lambda body: body.update(
            __doc__="The members that differ from weaker levels. The levels from weak to strong are: defaults, "
            "patterns, the table.",
            __annotations__={
                **{name: _general(name) for name in _GENERAL},
                **{name: _member(name) for name in SECTIONS},
            },
        ),
    )


class PatternPolicyIn(PolicyIn, total=False):
    """The policy of a pattern: like that of one table, with a precedence."""

    precedence: Annotated[
        int,
        Field(
            ge=-1000,
            le=1000,
            description="If several patterns match, the higher value wins (default 0), then the more exact pattern",
        ),
    ]


EXAMPLES: dict[str, Any] = {
    "compact by time or number, at night": {
        "value": {
            "time_zone": "Europe/Berlin",
            "windows": [{"start": "22:00", "end": "04:30"}],
            "compaction": {"trigger": "either", "commits": 10, "seconds": 7200},
        }
    },
    "sort on Saturdays, expand automatically": {
        "value": {
            "clustering": {"enabled": True, "sort_by": ["city"], "cron": "0 3 * * 6"},
            "bucket_expansion": {"mode": "auto", "max_bucket_bytes": 2 * GIB},
        }
    },
    "a read costs at most 1.2 times that of a compacted table": {
        "value": {"objective": {"read_overhead": 1.2, "log_age_seconds": 900, "max_gb_hours_per_day": 2}}
    },
    "start nothing": {"value": {"paused": True}},
}


class PatternPolicyOut(Shown, declared=PatternPolicy):
    created_at: datetime
    updated_at: datetime


class ListedPolicyOut(PatternPolicyOut):
    """A policy in the list, with the tables that have a setting from it."""

    tables: int = Field(description="Number of tables that have a setting from this policy", examples=[12])
    table_names: list[str] = Field(
        description="Names of the first of these tables", examples=[["orders_eu", "orders_us"]]
    )


class PreviewIn(Request):
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=SOME_TEXT)] = Field(
        description="A glob for names of tables", examples=["orders_*"]
    )
    policy: PatternPolicyIn | None = Field(
        description="The policy that the pattern would have; null for its deletion",
        examples=[{"compaction": {"commits": 10}}],
    )


SettingValue = bool | int | float | str | list[str | WindowIn | PrefixOfPolicy] | None


class ChangedSettingOut(Shown, declared=ChangedSetting):
    before: SettingValue = Field(description="Its value now", examples=[5])
    after: SettingValue = Field(description="Value after the edit", examples=[10])


class StartOut(BaseModel):
    """A job that would start now."""

    kind: JobKind
    because: str = Field(description="Why", examples=["12 commits since the last compaction, threshold 10"])


class PreviewTableOut(BaseModel):
    id: str = Field(description="Id of the table", examples=["tbl_0f3c2a9d5e7b1c44"])
    name: str
    settings: list[ChangedSettingOut] = Field(description="The settings that change")
    starts: list[StartOut] = Field(description="The jobs that would start now")


class PreviewOut(BaseModel):
    tables: int = Field(description="Number of tables whose policy would change", examples=[12])
    items: list[PreviewTableOut] = Field(description="The first of these tables")


class EffectivePolicyOut(BaseModel):
    policy: dict[str, Any] = Field(description="The effective policy of the table, with every member")
    sources: dict[str, str] = Field(
        description="The source of each member: `default`, `pattern <glob>` or `table`",
        examples=[{"compaction.commits": "pattern orders_*"}],
    )

    @classmethod
    def of(cls, effective: Effective) -> EffectivePolicyOut:
        return cls(policy=effective.policy.to_json(), sources=dict(effective.sources))


class PauseIn(Request):
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)] = Field(
        "", description="Shown to other users", examples=["the storage is being moved"]
    )


class PauseOut(BaseModel):
    paused: bool = Field(description="Whether automatic jobs are paused on all tables", examples=[True])
    since: datetime | None = None
    by: Word | None = Field(default=None, description="Who paused the jobs", examples=["ada (4f0c9d2b71aa)"])
    reason: str = Field(
        default="", description="The given reason; may be empty", examples=["the storage is being moved"]
    )

    @classmethod
    def of(cls, pause: Pause | None) -> PauseOut:
        return cls(paused=False) if pause is None else made(cls, pause, paused=True)
