"""Identifies persons through an OpenID provider, by the authorization code flow with PKCE or by the provider's access
tokens."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from service.access.errors import LoginRefusedError, ProviderUnavailableError
from service.access.oidc import signed
from service.access.oidc.exchange import call
from service.access.oidc.login_attempt import LoginAttempt
from service.access.oidc.provider import Provider
from service.access.oidc.remembered import Remembered
from service.access.oidc.signed import Header, RejectedTokenError
from service.access.token import Token
from service.model.errors import UnauthenticatedError
from service.model.loopback import is_loopback

log = logging.getLogger(__name__)

_LONGEST_WORDS = 300
# A longer ID token would not fit into an address.
_LONGEST_HINT = 4096


@dataclass(frozen=True)
class Addresses:
    """The part of the provider's metadata that the service needs (OpenID Connect Discovery 1.0)."""

    authorization: str
    token: str
    keys: str
    user_info: str | None
    end_session: str | None
    # Whether the client's secret is sent by HTTP basic authentication; if not, it is a member of the form.
    takes_basic: bool
    names_issuer: bool


class Identity:
    """Identifies persons. Thread-safe. The provider is not called before the first log-in, so the service starts even
    if the provider is unavailable."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._tls = httpx.create_ssl_context(trust_env=False)
        if provider.ca_file:
            self._tls.load_verify_locations(cafile=provider.ca_file)
        self._addresses = Remembered(self._fetch_addresses)
        self._keys = Remembered(self._fetch_keys)

    def begin_url(self, attempt: LoginAttempt, redirect_uri: str) -> str:
        """Returns the address at which the person logs in. Raises ProviderUnavailableError."""
        query = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.provider.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(self._addresses.get().authorization, query)

    def person(self, attempt: LoginAttempt, code: str, redirect_uri: str, now: datetime) -> tuple[Token, str]:
        """Exchanges the code for an ID token. Returns the person and the ID token. Raises LoginRefusedError and
        ProviderUnavailableError."""
        answer = self._redeem(code, attempt.verifier, redirect_uri)
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(id_token, str):
            raise LoginRefusedError("The provider has sent no ID token.")
        try:
            claims = self._claims(id_token, audience=self.provider.client_id, now=now)
            signed.check_of_login(claims, client_id=self.provider.client_id, nonce=attempt.nonce)
        except RejectedTokenError as error:
            raise LoginRefusedError(f"The ID token is not accepted. {error}") from error
        groups = self.provider.groups_in(claims)
        if groups is None and isinstance(access_token, str):
            claims = {**self._user_info(access_token, claims["sub"]), **claims}
            groups = self.provider.groups_in(claims)
        return self.provider.person(claims, groups or (), now), id_token

    def of_access_token(self, token: str, now: datetime) -> Token:
        """Returns the person or program of an access token (RFC 9068), as a token that is valid until the access token
        expires. Raises UnauthenticatedError, LoginRefusedError, ProviderUnavailableError."""
        audience = self.provider.audience
        assert audience is not None
        try:
            claims = self._claims(token, audience=audience, now=now)
        except RejectedTokenError as error:
            log.info("An access token was refused: %s", error)
            raise UnauthenticatedError("The token is not valid.") from error
        person = self.provider.person(claims, self.provider.groups_in(claims) or (), now)
        return person.until(claims["exp"] + signed.SKEW_SECONDS)

    def end_url(self, id_token: str, redirect_uri: str) -> str | None:
        """Returns the address at which the person logs out of the provider too (OpenID Connect RP-Initiated Logout).
        None if the provider has no such address or does not answer."""
        try:
            address = self._addresses.get().end_session
        except ProviderUnavailableError:
            return None
        hint = {"id_token_hint": id_token} if len(id_token) <= _LONGEST_HINT else {}
        query = {**hint, "client_id": self.provider.client_id, "post_logout_redirect_uri": redirect_uri}
        return _with_query(address, query) if address else None

    def check_issuer(self, named: str | None) -> None:
        """Checks which issuer has answered (RFC 9207). Raises LoginRefusedError for an issuer that is not the
        provider's."""
        if named != self.provider.issuer and (named is not None or self._addresses.get().names_issuer):
            raise LoginRefusedError("The answer comes from another issuer.")

    def _claims(self, token: str, *, audience: str, now: datetime) -> dict[str, Any]:
        header = Header.of(token)
        keys = self._keys.get(lacks=lambda known: not header.candidates(known))
        claims = signed.claims_of(token, header, keys)
        signed.check(claims, issuer=self.provider.issuer, audience=audience, now=now)
        return claims

    def _redeem(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        addresses, provider = self._addresses.get(), self.provider
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form |= {"code_verifier": verifier, "client_id": provider.client_id}
        basic = None
        if provider.client_secret is not None and addresses.takes_basic:
            # Id and secret are encoded like the parts of a form (RFC 6749, section 2.3.1).
            basic = (_encoded(provider.client_id), _encoded(provider.client_secret))
        elif provider.client_secret is not None:
            form["client_secret"] = provider.client_secret
        status, answer = call("POST", addresses.token, self._tls, form=form, basic=basic)
        if status != httpx.codes.OK:
            raise LoginRefusedError(f"The provider has not accepted the code: {words_of(answer)}.")
        return answer

    def _user_info(self, access_token: str, subject: str) -> dict[str, Any]:
        address = self._addresses.get().user_info
        if address is None:
            return {}
        status, answer = call("GET", address, self._tls, bearer=access_token)
        if status != httpx.codes.OK or answer.get("sub") != subject:
            raise LoginRefusedError("The provider has not returned the claims of the person.")
        return answer

    def _fetch_addresses(self) -> Addresses:
        issuer = self.provider.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        status, found = call("GET", url, self._tls)
        if status != httpx.codes.OK:
            raise ProviderUnavailableError(f"{url} has answered with status {status}.")
        if found.get("issuer") != issuer:
            raise ProviderUnavailableError(
                f"The document at {url} names another issuer.",
                hint="GROUNDSKEEPER_OIDC_ISSUER must be exactly the member `issuer` of the document.",
            )
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return Addresses(
            authorization=self._address(found, "authorization_endpoint"),
            token=self._address(found, "token_endpoint"),
            keys=self._address(found, "jwks_uri"),
            user_info=self._address(found, "userinfo_endpoint") if found.get("userinfo_endpoint") else None,
            end_session=self._address(found, "end_session_endpoint") if found.get("end_session_endpoint") else None,
            takes_basic="client_secret_basic" in methods,
            names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        )

    def _address(self, found: dict[str, Any], name: str) -> str:
        """Returns the address of this name. It must be an https address, unless the issuer itself is on this machine.
        Raises ProviderUnavailableError."""
        text = found.get(name)
        try:
            parts = urlsplit(text if isinstance(text, str) else "")
            is_local = is_loopback(parts.hostname or "") and self.provider.issuer.startswith("http://")
        except ValueError:
            parts, is_local = urlsplit(""), False
        if not (parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and is_local))):
            raise ProviderUnavailableError(f"The provider's metadata has no usable {name}.")
        return parts.geturl()

    def _fetch_keys(self) -> list[dict[str, Any]]:
        url = self._addresses.get().keys
        status, found = call("GET", url, self._tls)
        keys = found.get("keys")
        if status != httpx.codes.OK or not isinstance(keys, list):
            raise ProviderUnavailableError(f"{url} has no keys.")
        if len(keys) > signed.MOST_KEYS:
            raise ProviderUnavailableError(f"{url} has more than {signed.MOST_KEYS} keys.")
        return [each for each in keys if isinstance(each, dict)]


def words_of(answer: dict[str, Any]) -> str:
    """Returns the words of an error (RFC 6749, section 5.2)."""
    words = " ".join(str(answer[name]) for name in ("error", "error_description") if answer.get(name))
    return "".join(each for each in words if each.isprintable())[:_LONGEST_WORDS] or "no reason given"


def _with_query(address: str, query: dict[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"


def _encoded(text: str) -> str:
    return urlencode({"": text})[1:]
