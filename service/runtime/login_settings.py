"""The settings of the log-in by an OpenID provider."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads it at run time
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from jobs.storage.permissions import listed
from service.access.oidc.provider import Provider
from service.access.token import RANK, Role
from service.model.loopback import is_loopback


class LoginSettings(BaseSettings):
    oidc_issuer: str | None = Field(
        None, max_length=2048, description="Issuer of the OpenID provider, letter by letter"
    )
    oidc_client_id: str | None = Field(None, min_length=1, description="Id of this service at the provider")
    oidc_client_secret: SecretStr | None = Field(None, min_length=1, description="None for a public client")
    oidc_scopes: Annotated[tuple[str, ...], NoDecode] = Field(
        ("openid", "profile", "email"), description="What a log-in asks for, separated by commas"
    )
    oidc_groups_claim: str = Field("groups", min_length=1, description="Claim with the groups of a person")
    oidc_roles: dict[str, Role] = Field(
        default_factory=dict, description="JSON object: groups with the role of their members; `*` is everybody"
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
            roles=self.oidc_roles,
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

    @field_validator("oidc_roles")
    @classmethod
    def _are_of_persons(cls, value: dict[str, Role]) -> dict[str, Role]:
        if any(role not in RANK for role in value.values()):
            raise ValueError(f"must be {', '.join(RANK)}")
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
