"""The log-in through an OpenID provider. A browser begins it at /login, and comes back to /login/callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from pydantic import StringConstraints

from service.access import session_store, token_store
from service.access.errors import LoginExpiredError, LoginRefusedError
from service.access.oidc.identity import words_of
from service.access.oidc.login_attempt import LIFETIME, LoginAttempt
from service.access.session import opened
from service.api import problem_pages
from service.api.dependencies import LOGIN_CALLBACK_PATH, LOGIN_PATH, Caller, DatabaseDep, ExposureDep, IdentityDep
from service.api.session import OF_LOGIN, OF_SESSION, must_be_secure
from service.api.statuses import SEE_OTHER
from service.db import audit_record
from service.db.engine import writing
from service.model.errors import GroundskeeperError

router = APIRouter()

_LONGEST = 4096
# The pattern of a page of the dashboard. Only the part of an address after `#` is accepted, so the browser cannot be
# sent to another site.
_PAGE = r"^#/[!-~]*$"
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

Page = Annotated[str | None, StringConstraints(max_length=1024, pattern=_PAGE), Query()]
Word = Annotated[str | None, StringConstraints(max_length=_LONGEST)]


def install(app: FastAPI) -> list[APIRoute]:
    """Adds the routes, which need no token; returns those that the audit trail records."""
    app.include_router(router, include_in_schema=False)
    return [each for each in router.routes if isinstance(each, APIRoute)]


def _redirect(url: str) -> Response:
    return RedirectResponse(url, status_code=SEE_OTHER, headers=_HEADERS)


def _for_browsers(request: Request, work: Callable[[], Response]) -> Response:
    """Answers an error with a page if the caller is a browser."""
    try:
        return work()
    except GroundskeeperError as error:
        request.state.problem = error.type
        page = problem_pages.shown_to(request, error)
        if page is None:
            raise
        return page


@router.get(LOGIN_PATH, operation_id="beginLogIn")
def begin(
    request: Request,
    database: DatabaseDep,
    exposure: ExposureDep,
    identity: IdentityDep,
    next: Page = None,  # noqa: A002
) -> Response:
    """Sends the browser to the provider; `next` is the page of the dashboard to show afterwards."""

    assert identity is not None

    def work() -> Response:
        is_secure = must_be_secure(request, exposure)
        attempt = LoginAttempt.new(next or "", database.clock())
        answer = _redirect(identity.begin_url(attempt, exposure.url_for(request) + LOGIN_CALLBACK_PATH))
        sealed = attempt.sealed(database.cipher)
        OF_LOGIN.give(answer, request, sealed, LIFETIME, is_secure=is_secure)
        return answer

    return _for_browsers(request, work)


@router.get(LOGIN_CALLBACK_PATH, operation_id="logIn")
def come_back(
    request: Request,
    database: DatabaseDep,
    exposure: ExposureDep,
    identity: IdentityDep,
    *,
    state: Word = None,
    code: Word = None,
    error: Word = None,
    error_description: Word = None,
    iss: Word = None,
) -> Response:
    """Opens the session of the person, and redirects to the page that was asked for when the log-in began."""

    assert identity is not None

    def work() -> Response:
        now, cipher = database.clock(), database.cipher
        attempt = LoginAttempt.opened(OF_LOGIN.of(request), state or "", cipher, now)
        identity.check_issuer(iss)
        if error is not None or code is None:
            words = words_of({"error": error, "error_description": error_description})
            raise LoginRefusedError(f"The provider says: {words}.")
        home = exposure.url_for(request)
        person, id_token = identity.person(attempt, code, home + LOGIN_CALLBACK_PATH, now)
        is_secure = must_be_secure(request, exposure)
        request.state.caller = Caller.of(person)
        with writing(database.engine) as connection:
            stored = token_store.put_person(connection, person)
            if not stored.is_valid(now):
                raise LoginRefusedError(f"The access of {person.name} was revoked.")
            cookie, session = opened(
                stored,
                now,
                exposure.session_lifetime,
                session_id=attempt.session_id,
                id_token=cipher.seal(id_token),
            )
            audit_record.about("session", session.id)
            if not session_store.add(connection, session):
                raise LoginExpiredError("This answer of the provider has already opened a session.")
        answer = _redirect(f"{home}/{attempt.page}")
        OF_SESSION.give(answer, request, str(cookie), session.lifetime, is_secure=is_secure)
        OF_LOGIN.take_back(answer, request)
        return answer

    return _for_browsers(request, work)
