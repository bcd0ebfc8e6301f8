"""The declaration of a catalog in GROUNDSKEEPER_CATALOGS."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

import sqlalchemy as sa
from pydantic import Field, SecretStr, StringConstraints, model_validator

from jobs.format import server_addresses
from jobs.kinds.words import NO_NUL
from jobs.redaction import redacted
from jobs.storage import accounts
from jobs.storage.accounts import Account
from jobs.storage.location import LocationError, canonical, is_below
from service.api import tables
from service.api.requests import NAME, LockIn, Options, Owner, ReadersIn, Request, TableIn, Tags, WritersIn
from service.events.database import Database
from service.observation.lake_access import LakeAccess
from service.registration.catalogs.catalog import Catalog, CatalogKind, OnDropped, OnMoved, OnNew, Source

_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL)]
_Patterns = Annotated[list[_Pattern], Field(max_length=100)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL)]

# Members that only some kinds of catalogs have, and whether a kind needs them.
_MEMBERS = {
    CatalogKind.GLUE: {"account": False, "region": False},
    CatalogKind.HIVE: {},
    CatalogKind.UNITY: {"token": False},
    CatalogKind.SQL: {"query": True},
}


class CatalogIn(Request):
    """A catalog, and what to do with its tables. The form of `address` depends on the kind. Glue:
    `glue://glue.eu-central-1.amazonaws.com`, with the id of another account as its path. Hive: `thrift://host:9083`, or
    several such addresses, separated by commas. Unity Catalog: `https://host`. A database: a URL of SQLAlchemy."""

    name: Annotated[str, StringConstraints(max_length=63, pattern=NAME)]
    kind: CatalogKind
    address: SecretStr
    account: _Text | None = None
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}$")] | None = None
    token: SecretStr | None = None
    query: _Text | None = None
    databases: _Patterns = Field(default_factory=lambda: ["*"])
    tables: _Patterns = Field(default_factory=lambda: ["*"])
    property: Annotated[str, StringConstraints(pattern=r"^[^=\x00]{1,255}=[^\x00]{1,255}$")] | None = None
    roots: Annotated[list[_Text], Field(max_length=50)] = Field(default_factory=list)
    new: OnNew = OnNew.REPORT
    moved: OnMoved = OnMoved.REPORT
    dropped: OnDropped = OnDropped.REPORT
    most_dropped: float = Field(0.1, ge=0, le=1)
    every_seconds: float = Field(3600.0, ge=10, le=604_800)
    tag_parameters: _Patterns = Field(default_factory=list)
    lock: LockIn = Field(default_factory=lambda: LockIn.model_validate({}))
    writers: WritersIn | None = None
    readers: ReadersIn | None = None
    hudi_options: Options = Field(default_factory=dict)
    owner: Owner | None = None
    tags: Tags = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        members = _MEMBERS[self.kind]
        for name in {each for of_kind in _MEMBERS.values() for each in of_kind}:
            if getattr(self, name) is None and members.get(name):
                raise ValueError(f"a catalog of the kind {self.kind} needs: {name}")
            if getattr(self, name) is not None and name not in members:
                raise ValueError(f"a catalog of the kind {self.kind} does not have: {name}")
        _check_address(self.kind, self.address.get_secret_value())
        for root in self.roots:
            try:
                canonical(root)
            except LocationError as error:
                raise ValueError(f"roots: {error}") from error
        return self

    def check(self, allowed_roots: tuple[str, ...] | None, declared: tuple[Account, ...]) -> None:
        """Raises ValueError if neither the settings nor the catalog say where tables may lie, or if the account does
        not exist."""
        if allowed_roots is None and not self.roots:
            raise ValueError(f"{self.name}: needs roots, because GROUNDSKEEPER_ALLOWED_ROOTS is not set")
        self._account(declared)

    def to_catalog(self, database: Database, lake: LakeAccess, declared: tuple[Account, ...]) -> Catalog:
        members = self.model_dump(include={"new", "moved", "dropped", "most_dropped", "every_seconds"})
        account = self._account(declared)
        name, _, value = (self.property or "").partition("=")
        source = Source(
            kind=self.kind,
            address=self.address.get_secret_value(),
            databases=tuple(self.databases),
            tables=tuple(self.tables),
            account=accounts.encoded([account])[1:-1] if account else None,
            region=self.region,
            token=self.token.get_secret_value() if self.token else None,
            query=self.query,
            marker=(name, value) if name else None,
            kept=tuple(self.tag_parameters),
        )
        of_tables = {
            each: getattr(self, each) for each in ("lock", "writers", "readers", "hudi_options", "owner", "tags")
        }
        table = TableIn(base_path="/", name=None, index=None, **of_tables)
        return Catalog(
            name=self.name,
            source=source,
            shown_address=_shown(self.kind, source.address),
            declared=tables.declarations(table, database, lake),
            roots=tuple(map(canonical, self.roots)),
            **members,
        )

    def _account(self, declared: tuple[Account, ...]) -> Account | None:
        if self.account is None:
            return None
        root = canonical(self.account)
        found = next((each for each in declared if each.scheme == "s3a" and is_below(root, each.roots)), None)
        if found is None:
            raise ValueError(f"{self.name}: account: GROUNDSKEEPER_STORAGE_ACCOUNTS has none on S3 for {root}")
        return found


def _check_address(kind: CatalogKind, text: str) -> None:
    """Raises ValueError for a wrong address. The error does not contain the address, which may have a password."""
    try:
        if kind is CatalogKind.SQL:
            sa.make_url(text)
            return
        schemes = {CatalogKind.HIVE: {"thrift"}, CatalogKind.UNITY: {"http", "https"}}
        is_of_kind = server_addresses.is_glue(text) if kind is CatalogKind.GLUE else True
        if not is_of_kind or urlsplit(text).scheme not in schemes.get(kind, {urlsplit(text).scheme}):
            raise ValueError
        server_addresses.metastores(text)
    except (ValueError, sa.exc.ArgumentError):
        raise ValueError(f"address: does not belong to a catalog of the kind {kind}") from None


def _shown(kind: CatalogKind, address: str) -> str:
    """Returns the address without a password."""
    if kind is CatalogKind.SQL:
        return sa.make_url(address).set(query={}).render_as_string(hide_password=True)
    return redacted(address)
