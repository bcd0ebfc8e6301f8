"""Controls Debian's Chromium by Playwright. A fault on a page fails the test that opened it."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page, Response

# The first program draws no windows and tabs around its pages, which would take a third of the CPU time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
# A busy machine may take long to draw a page. Only a failing test waits for all of these milliseconds.
_PATIENCE = 60_000
expect.set_options(timeout=_PATIENCE)
DESKTOP = (1280, 900)
PHONE = (390, 844)
Theme = Literal["light", "dark"]
_AXE = Axe().axe_script
# Two of axe's four impacts; "minor" and "moderate" are advice. The other results are large, and stay in the browser.
_BARRIERS = """() => axe.run({resultTypes: ["violations"]}).then(({violations}) =>
    violations.filter(({impact}) => ["serious", "critical"].includes(impact)))"""


@contextmanager
def running() -> Iterator[Browser]:
    """Yields a browser. No test in the same thread may run its own event loop meanwhile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


_shared = ExitStack()


@cache
def shared() -> Browser:
    """Returns the browser of all tests that follow one after the other, and starts it for the first of them."""
    return _shared.enter_context(running())


def end_shared() -> None:
    """Ends the shared browser before a test that needs none, because that test may run an event loop of its own."""
    shared.cache_clear()
    _shared.close()


class Faults:
    """The faults on a page: errors of scripts and on the console, and failed or refused requests."""

    def __init__(self, page: Page) -> None:
        self._found: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        page.on("pageerror", lambda error: self._found.append(f"script: {error}"))
        page.on("console", lambda each: each.type == "error" and self._found.append(f"console: {each.text}"))
        page.on("requestfailed", lambda each: self._failed(each.url, each.failure))
        page.on("response", self._answered)

    def allow(self, pattern: str) -> None:
        """Allows faults that match, found before this call or after it: a test that provokes a fault names the fault
        here."""
        self._allowed.append(re.compile(pattern))

    def unexpected(self) -> list[str]:
        return [each for each in self._found if not any(pattern.search(each) for pattern in self._allowed)]

    def _failed(self, url: str, why: str | None) -> None:
        # A page that is left or hidden aborts its stream and its other requests.
        if not ("/v1/" in url and why == "net::ERR_ABORTED"):
            self._found.append(f"request: {url}: {why}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._found.append(f"answer: {response.status} {response.request.method} {response.url}")


def new_context(browser: Browser, theme: Theme = "light", size: tuple[int, int] = DESKTOP) -> BrowserContext:
    width, height = size
    options: dict[str, Any] = {"is_mobile": True, "has_touch": True} if size == PHONE else {}
    context = browser.new_context(
        color_scheme=theme,
        viewport={"width": width, "height": height},
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(_PATIENCE)
    return context


def barriers(page: Page) -> list[str]:
    """Returns all serious problems of accessibility that axe finds on the page, one line for each element."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_AXE)
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {' '.join(map(str, node['target']))}: {node['html'][:200]}"
        for each in page.evaluate(_BARRIERS)
        for node in each["nodes"]
    ]


def is_wider_than_the_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
