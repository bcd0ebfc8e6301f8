"""Login by Kerberos over HTTP (SPNEGO, RFC 4559), with the tickets that MIT's library finds in the environment.

The library takes tickets from `KRB5CCNAME`, or gets and renews them with the keytab in `KRB5_CLIENT_KTNAME`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Generator
from typing import Any

import httpx

from jobs.storage.store import LoginError

_SPNEGO, _KRB5 = "1.3.6.1.5.5.2", "1.2.840.113554.1.2.2"


class Negotiate(httpx.Auth):
    """Sends a ticket for `HTTP@host` with each request. The server has to prove that it could read it.

    Requests raise LoginError without the extra, without a ticket, and if the ticket is refused.
    """

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        host = request.url.host
        gssapi = _gssapi()
        try:
            # Kerberos itself is asked to get an error with the cause, because SPNEGO's own error has none.
            gssapi.Credentials(usage="initiate", mechs=[gssapi.OID.from_int_seq(_KRB5)])
            context = gssapi.SecurityContext(
                name=gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service),
                usage="initiate",
                mech=gssapi.OID.from_int_seq(_SPNEGO),
                flags=[gssapi.RequirementFlag.mutual_authentication],
            )
            request.headers["Authorization"] = f"Negotiate {base64.b64encode(context.step()).decode()}"
            answer = yield request
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise LoginError(f"{host} does not accept the Kerberos ticket of {context.initiator_name}")
            if answer.is_success:
                proof = _token(answer)
                if not proof:
                    raise LoginError(f"{host} does not prove by Kerberos that it is HTTP/{host}")
                context.step(proof)
        except gssapi.exceptions.GSSError as error:
            raise LoginError(f"no Kerberos login at HTTP/{host}: {_reason_of(error)}") from error


def _gssapi() -> Any:
    try:
        # The import is here because the package is optional: its wheels are built on the machine, against MIT's
        # library.
        import gssapi
    except ImportError as error:
        raise LoginError(
            f"Groundskeeper's extra `kerberos` is not installed ({error}): pip install 'groundskeeper[kerberos]'"
        ) from error
    return gssapi


def _token(answer: httpx.Response) -> bytes:
    scheme, _, token = answer.headers.get("WWW-Authenticate", "").partition(" ")
    try:
        return base64.b64decode(token, validate=True) if scheme.lower() == "negotiate" else b""
    except binascii.Error:
        return b""


def _reason_of(error: Any) -> str:
    """Returns the reason of the mechanism, else GSSAPI's own."""
    texts = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(error.maj_code, True)
    return "; ".join(text.strip("\0 ") for text in texts)[:300]
