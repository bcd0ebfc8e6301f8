"""The cookie of a session: HttpOnly, SameSite=Strict, and Secure unless the page comes from a loopback address."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from fastapi import Request, Response

from service.access.errors import UnencryptedLoginError
from service.access.session import Cookie, Session
from service.api.exposure import Exposure, is_loopback

# Browsers take a cookie of this name only from the very host, encrypted.
_SECURE = "__Host-groundskeeper"


def cookie_of(request: Request) -> Cookie | None:
    text = request.cookies.get(_SECURE) or request.cookies.get(_plain(request))
    return Cookie.parse(text) if text else None


def set_cookie(response: Response, cookie: Cookie, session: Session, *, is_secure: bool, request: Request) -> None:
    name, seconds = _SECURE if is_secure else _plain(request), _seconds(session.created_at, session.expires_at)
    response.set_cookie(
        name, str(cookie), max_age=seconds, path="/", secure=is_secure, httponly=True, samesite="strict"
    )


def clear(response: Response, request: Request) -> None:
    response.delete_cookie(_SECURE, path="/", secure=True, httponly=True, samesite="strict")
    response.delete_cookie(_plain(request), path="/", httponly=True, samesite="strict")


def must_be_secure(request: Request, exposure: Exposure) -> bool:
    """Returns whether the page was loaded encrypted, False for one from a loopback address. Raises
    UnencryptedLoginError for any other.

    The browser names the page's scheme and host in `Origin`, which no proxy changes.
    """
    origin = request.headers.get("origin")
    if origin is None and (exposure.public_url or "").startswith("https://"):
        return True
    try:
        page = urlsplit(str(request.base_url) if origin is None else origin)
        scheme, host = page.scheme, page.hostname or ""
    except ValueError as error:
        raise UnencryptedLoginError from error
    if scheme == "https":
        return True
    if is_loopback(host):
        return False
    raise UnencryptedLoginError


def _plain(request: Request) -> str:
    """Returns the name of the cookie without encryption. Cookies of all ports of a host are sent to each of them."""
    server = request.scope.get("server")
    return f"groundskeeper-{server[1] if server and server[1] else 80}"


def _seconds(start: datetime, end: datetime) -> int:
    return max(0, int((end - start).total_seconds()))
