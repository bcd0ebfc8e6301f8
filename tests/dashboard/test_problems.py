"""A real service with all problems at once shows them on the page, and removes them after their repair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import expect

from tests.dashboard.fleet import Fleet
from tests.dashboard.scenes import SCENES, policy_cannot_act
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


def test_an_overview_without_tables_leads_to_the_form_that_registers_one(fleet: Fleet, page: Page) -> None:
    page.goto(fleet.service.url)
    page.locator("#tables").get_by_role("link", name="Register a table").click()
    expect(page.get_by_label("Path")).to_be_visible()


@pytest.mark.exhaustive
def test_every_problem_is_on_the_page_until_it_is_repaired(fleet: Fleet, page: Page) -> None:
    standing = [(kind, scene(fleet)) for scene, kind in SCENES.items()]
    wrong = [(kind, next(scene), scene) for kind, scene in standing]

    def listed() -> dict[tuple[str, str], Any]:
        items = fleet.call("GET", "/problems?limit=500")["items"]
        return {(each["kind"], each["about"]["name"]): each for each in items}

    wanted = {(kind.value, name) for kind, name, _ in wrong}
    assert eventually(lambda: listed().keys() >= wanted, 60), wanted - listed().keys()
    problems = listed()
    open_overview(page, fleet)
    for kind, name, _ in wrong:
        found = problems[kind, name]
        # The problems are ranked, each with title, consequence and remedy.
        shown = notice(page, name, found["title"])
        expect(shown).to_have_count(1)
        expect(shown).to_contain_text(found["severity"])
        for words in (found["consequence"], found["remedy"]):
            expect(shown).to_contain_text(words)
        command = shown.locator("code")
        expect(command).to_have_text(found["command"])
        expect(command).to_be_visible()
        expect(shown.get_by_role("button", name=f"Copy the command: {found['title']}, {name}")).to_be_visible()
        if found["action"]:
            role: Literal["link", "button"] = "link" if found["action"]["method"] == "GET" else "button"
            expect(shown.locator(".actions").get_by_role(role, name=found["action"]["label"])).to_be_visible()
    ranks = [each for each in page.locator("details.group > summary").all_inner_texts() if each]
    order = [re.match(r"\s*(critical|warning|notice)", each) for each in ranks]
    severities = [found.group(1) for found in order if found]
    assert severities == sorted(severities, key=["critical", "warning", "notice"].index)

    for _, _, scene in wrong:
        assert next(scene, None) is None
    assert eventually(lambda: not listed().keys() & wanted, 60), listed().keys() & wanted

    def left_on_page() -> set[str]:
        open_overview(page, fleet)
        page.wait_for_selector("[data-key=problems]")
        return {name for kind, name, _ in wrong if notice(page, name, problems[kind, name]["title"]).count()}

    # The page shows an older result, and requests a new one.
    assert eventually(lambda: not left_on_page(), 60), left_on_page()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_a_command_is_copied_with_the_keyboard(fleet: Fleet, page: Page, has_clipboard: bool) -> None:
    """Browsers let a page write to the clipboard only if it came by HTTPS or from the same machine."""
    name = next(policy_cannot_act(fleet))

    def problems() -> list[dict[str, Any]]:
        return list(fleet.call("GET", "/problems?kind=policy-cannot-act")["items"])

    assert eventually(lambda: bool(problems()), 60)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if not has_clipboard:
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    open_overview(page, fleet)
    notice(page, name, "can never run").get_by_role("button", name="Copy the command").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#spoken")).to_have_text("The command is copied.")
    [found] = problems()
    held = "navigator.clipboard.readText()" if has_clipboard else "getSelection().toString()"
    assert page.evaluate(held) == found["command"]
    assert "'<COLUMN>'" in found["command"]


def open_overview(page: Page, fleet: Fleet) -> None:
    page.goto("about:blank")
    page.goto(fleet.service.url)
    page.wait_for_selector("#pulse.live")
    every = page.get_by_role("button", name=re.compile("Show all"))
    if every.count():
        every.first.click()
    for group in page.locator("details.group > summary").all():
        group.click()
    for group in page.locator("details.group").all():
        expect(group.locator("li.problem").first).to_be_visible()


def notice(page: Page, name: str, title: str) -> Any:
    return page.locator("li.problem").filter(has_text=title).filter(has_text=name)
