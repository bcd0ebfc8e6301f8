"""The settings of the log-in through an OpenID provider."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from jobs.storage.permissions import listed
from service.access.oidc.provider import Grant, Provider
from service.access.token import RANK, Role
from service.model.loopback import is_loopback


class GroupRole(BaseModel):
    """The role that a group gives its members. If the role holds only for some tables, the members are readers of all
    others, like the holder of a token that has `--tables`."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    tables: (
        Annotated[tuple[Annotated[str, StringConstraints(min_length=1, max_length=255)], ...], Field(min_length=1)]
        | None
    ) = None

    @model_validator(mode="before")
    @classmethod
    def _of_role(cls, given: Any) -> Any:
        return {"role": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _is_of_persons(self) -> Self:
        if self.role not in RANK:
            raise ValueError(f"must be {', '.join(RANK)}")
        if self.tables and self.role is Role.READER:
            raise ValueError("only the roles operator and admin can be limited to tables")
        return self


class LoginSettings(BaseSettings):
    oidc_issuer: str | None = Field(
        None, max_length=2048, description="Issuer of the OpenID provider, exactly as the provider names it"
    )
    oidc_client_id: str | None = Field(None, min_length=1, description="Id of this service at the provider")
    oidc_client_secret: SecretStr | None = Field(None, min_length=1, description="None for a public client")
    oidc_scopes: Annotated[tuple[str, ...], NoDecode] = Field(
        ("openid", "profile", "email"), description="Scopes of a log-in, separated by commas"
    )
    oidc_groups_claim: str = Field("groups", min_length=1, description="Claim with the groups of a person")
    oidc_roles: dict[str, GroupRole] = Field(
        default_factory=dict,
        description="JSON object: groups with the role of their members, or with the role and the tables for which it"
        " holds; `*` is everybody",
    )
    oidc_audience: str | None = Field(
        None, min_length=1, description="Audience of the issuer's access tokens that calls may carry. Default: none may"
    )
    oidc_ca_file: Path | None = Field(None, description="PEM file of certificate authorities beside the public ones")

    @property
    def provider(self) -> Provider | None:
        if self.oidc_issuer is None:
            return None
        secret = self.oidc_client_secret
        return Provider(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id or "",
            client_secret=secret.get_secret_value() if secret else None,
            scopes=self.oidc_scopes,
            groups_claim=self.oidc_groups_claim,
            roles={group: Grant(each.role, each.tables) for group, each in self.oidc_roles.items()},
            audience=self.oidc_audience,
            ca_file=str(self.oidc_ca_file) if self.oidc_ca_file else None,
        )

    @field_validator("oidc_issuer")
    @classmethod
    def _is_encrypted(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
        is_near = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not (parts.hostname and is_plain and (parts.scheme == "https" or is_near)):
            raise ValueError("must be an https URL without user, query and fragment; http at a loopback address only")
        return value

    @field_validator("oidc_scopes", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return listed(value) if isinstance(value, str) else value

    @field_validator("oidc_scopes")
    @classmethod
    def _ask_for_an_id_token(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("must have openid")
        return value

    @field_validator("oidc_ca_file")
    @classmethod
    def _is_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError(f"{value} is no file")
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        fields = LoginSettings.model_fields.items()
        given = [name for name, each in fields if getattr(self, name) != each.get_default(call_default_factory=True)]
        if self.oidc_issuer is None and given:
            raise ValueError(f"GROUNDSKEEPER_{given[0].upper()} needs GROUNDSKEEPER_OIDC_ISSUER")
        if self.oidc_issuer is not None and not (self.oidc_client_id and self.oidc_roles):
            raise ValueError(
                "GROUNDSKEEPER_OIDC_ISSUER needs GROUNDSKEEPER_OIDC_CLIENT_ID and GROUNDSKEEPER_OIDC_ROLES"
            )
        return self
