// A form that finds the tables below a folder, shows the owner and tags that each table would get, and registers the
// tables.

import { post } from "./api.js";
import { h } from "./dom.js";
import { card, field, grid, problem, tableLink } from "./components.js";
import { declaredIn, declaringPage, given, givenList, registerButtons, text } from "./declaration_fields.js";

// The service searches for 40 s at most.
const PATIENCE_MS = 60_000;
const HEADINGS = ["Path", "State", "Owner", "Tags"];

export function discoverPage(changed) {
  return declaringPage("Find tables", changed, {
    draw: (page) => [form(page), page.failure && problem(page.failure), page.found && results(page.found)],
    call: (data, register) => post("v1/discover", wanted(data, register), PATIENCE_MS),
  });
}

function form({ send, fields, isSending }) {
  return card(
    "discover",
    "Folder to search",
    h(
      "form",
      { onsubmit: send },
      field("Folder", text("root", { required: true, maxlength: 4096, placeholder: "s3a://lake/" }), "An absolute path or a URI. The service searches six levels of folders below it."),
      field("Paths", text("pattern", { maxlength: 1024, placeholder: "*" }), "A pattern for paths relative to the folder: shop/*. Empty: all."),
      field(
        "Rules",
        h("textarea", { name: "rules", rows: 3, spellcheck: "false", placeholder: "{team}/*" }),
        "One rule for paths per line. In {team}/*, the name of the folder becomes the value of the tag team; {owner} gives the owner. * is one folder, ** any number.",
      ),
      ...fields(),
      registerButtons(isSending, "Searching …", "Register all"),
      h("p", { class: "quiet" }, "Lock and writers are declared for all of these tables. Policies act on each table as soon as it is registered."),
    ),
  );
}

/** The body of the call from the form's controls. */
function wanted(data, register) {
  return {
    root: given(data, "root"),
    ...(given(data, "pattern") && { pattern: given(data, "pattern") }),
    rules: givenList(data, "rules", "\n"),
    register,
    ...declaredIn(data),
  };
}

function results({ items, skipped, is_complete: isComplete }) {
  return card(
    "found",
    `Tables (${items.length})`,
    grid("Tables", HEADINGS, items.map(row), "There are no tables."),
    skipped.length > 0 && h("p", { class: "quiet" }, `Not searched: ${skipped.map((each) => each.path).join(", ")}`),
    !isComplete && h("p", { class: "quiet" }, "There may be more tables. Register these and search again, or name a folder further below."),
  );
}

function row(each) {
  const keeps = each.state === "registered" && !each.is_new;
  return {
    key: each.base_path,
    cells: [
      h("code", {}, each.base_path),
      each.table_id ? tableLink(each.table_id, each.is_new ? "registered now" : "registered") : each.reason ? h("span", { class: "badge failed", title: each.reason.detail }, each.reason.title) : "can be registered",
      keeps ? "keeps its own" : (each.owner ?? "–"),
      keeps ? "keeps its own" : tags(each.tags) || "–",
    ],
  };
}

const tags = (found) => Object.entries(found).map(([key, value]) => (value ? `${key}=${value}` : key)).join(", ");
