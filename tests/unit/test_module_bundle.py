"""Tests the module that the service bundles from the overview's imports. Browsers run it in `tests/dashboard`."""

from __future__ import annotations

import re

import pytest

from service.api.dashboard import FOLDER, joined, scripts

MODULES = scripts(FOLDER)

MAIN = """// The entry.
import { draw } from "./page.js";

draw(() => import("./later.js"));
"""
PAGE = """import { NAME, Box } from "./box.js";

const width = 3;

export function draw(more) {
  return new Box(NAME, width, more);
}
"""
BOX = """const width = 7;

export const NAME = "box";
export class Box {}
export async function measured() {
  return width;
}
"""
LATER = """import { Box } from "./box.js";
import { own } from "./own.js";

own(Box);
"""
SMALL = {"main.js": MAIN, "page.js": PAGE, "box.js": BOX, "later.js": LATER, "own.js": "export function own() {}\n"}

_JOINED = """const $box = (() => {
const width = 7;

const NAME = "box";
class Box {}
async function measured() {
  return width;
}
return { NAME, Box, measured };
})();
const $page = (() => {
const { NAME, Box } = $box;

const width = 3;

function draw(more) {
  return new Box(NAME, width, more);
}
return { draw };
})();
const $main = (() => {
// The entry.
const { draw } = $page;

draw(() => import("./later.js"));
return {  };
})();
export { $box, $page };
"""


def test_the_entry_contains_what_it_imports_in_order_and_each_keeps_its_own_names() -> None:
    assert joined(SMALL, "main.js")["main.js"] == _JOINED


def test_a_module_that_is_imported_later_takes_from_the_entry_what_is_in_it_and_imports_the_rest() -> None:
    later = joined(SMALL, "main.js")["later.js"]
    assert later.splitlines()[:2] == [
        'import { $box } from "./main.js"; const { Box } = $box;',
        'import { own } from "./own.js";',
    ]
    assert joined(SMALL, "main.js")["own.js"] == SMALL["own.js"]


@pytest.mark.parametrize(
    "statement",
    [
        'import * as box from "./box.js";',
        'import box from "./box.js";',
        'import "./box.js";',
        "export default 3;",
        "export let width = 3;",
        'export { NAME } from "./box.js";',
        "await draw();",
    ],
)
def test_modules_that_cannot_be_bundled_are_refused(statement: str) -> None:
    with pytest.raises(ValueError, match=re.escape(statement)):
        joined({**SMALL, "page.js": f"{PAGE}{statement}\n"}, "main.js")


def test_modules_that_import_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        joined({**SMALL, "box.js": f'import {{ draw }} from "./page.js";\n{BOX}'}, "main.js")


def test_every_name_that_a_module_of_the_dashboard_imports_is_exported() -> None:
    exported = {
        name: set(re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE))
        for name, text in MODULES.items()
    }
    imported = [
        (name, module, set(names.split(", ")))
        for name, text in MODULES.items()
        for names, module in re.findall(r'^import \{ (.+) \} from "\./(.+)";$', text, re.MULTILINE)
    ]
    assert len(imported) > 100
    assert [
        (name, module, names - exported[module]) for name, module, names in imported if names - exported[module]
    ] == []


def test_nothing_of_the_dashboard_is_in_two_files() -> None:
    served = joined(MODULES, "main.js")
    within = set(re.findall(r"^const \$(\w+) = ", served["main.js"], re.MULTILINE)) - {"main"}
    assert {"dom", "role", "overview"} <= within
    others = "".join(text for name, text in served.items() if name.removesuffix(".js") not in within)
    assert [name for name in within if f'from "./{name}.js"' in others] == []
