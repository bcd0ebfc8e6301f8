// The audit trail, newest entry first, with filters and pages. Only the role admin may see it.

import { get } from "./api.js";
import { h } from "./dom.js";
import { moment, sentence } from "./format.js";
import { card, field, grid, pairs, select, time } from "./components.js";

const PAGE = 50;
const HEADINGS = ["When", "Who", "What", "Object", "Outcome"];
const OUTCOMES = ["done", "refused", "failed"];
const TYPES = ["table", "table-policy", "policy", "pause", "webhook", "consumer", "job", "incident", "delivery", "token", "session"];
/** An outcome has the colour of a similar state of a job. */
const BADGES = { done: "succeeded", refused: "unknown", failed: "failed" };

export function auditPage(changed) {
  let filter = {};
  let entries = new Map();
  let cursor;
  let isLoaded = false;

  async function load() {
    const asked = filter;
    const page = await get("v1/audit", { ...asked, limit: PAGE });
    if (asked !== filter) return;
    // Older entries that have been loaded stay on the page.
    entries = new Map([...page.items.map((each) => [each.id, each]), ...[...entries].filter(([id]) => !page.items.some((each) => each.id === id))]);
    if (!isLoaded) cursor = page.next_cursor;
    isLoaded = true;
  }

  async function loadMore() {
    const asked = filter;
    const page = await get("v1/audit", { ...asked, limit: PAGE, cursor });
    if (asked !== filter) return;
    for (const each of page.items) entries.set(each.id, each);
    cursor = page.next_cursor;
  }

  function pick(name, value) {
    filter = { ...filter, [name]: value.trim() };
    entries = new Map();
    cursor = undefined;
    isLoaded = false;
    changed();
  }

  function choices() {
    const text = (label, name) =>
      field(label, h("input", { type: "search", autocomplete: "off", onchange: (event) => pick(name, event.target.value) }));
    const chooser = (label, name, values) =>
      field(label, select({ onchange: (event) => pick(name, event.target.value) }, [["", "all"], ...values.map((each) => [each, each])]));
    return h(
      "div",
      { class: "filters" },
      text("Who", "who"),
      text("Operation", "operation"),
      chooser("Object", "object_type", TYPES),
      text("Id of the object", "object_id"),
      chooser("Outcome", "outcome", OUTCOMES),
    );
  }

  function draw() {
    const shown = [...entries.values()].sort((a, b) => b.at.localeCompare(a.at) || b.id - a.id);
    const more = () => loadMore().then(() => changed(), changed);
    return [
      h("h1", { "data-key": "title" }, "Audit"),
      card(
        "audit",
        "Who changed what",
        choices(),
        grid("Audit trail", HEADINGS, shown.map((each) => ({ key: String(each.id), cells: cells(each) })), isLoaded ? "No matching entries." : "Loading …"),
        cursor && h("button", { type: "button", class: "more", onclick: more }, "Load more"),
      ),
    ];
  }

  return { title: () => "Audit", load, draw, isBusy: () => false };
}

function cells(entry) {
  return [
    time(entry.at),
    [entry.who, h("div", { class: "quiet" }, [entry.role, entry.address].filter(Boolean).join(", "))],
    h(
      "details",
      {},
      h("summary", {}, sentence(words(entry.operation))),
      pairs(
        ["At", moment(entry.at)],
        ["Call", h("code", {}, `${entry.method} ${entry.route}`)],
        ["Token", entry.token_id && h("code", {}, entry.token_id)],
        ["Problem", entry.problem],
        ...differences(entry.before, entry.after),
      ),
    ),
    entry.object_type && [entry.object_name ?? "", h("div", { class: "path" }, `${entry.object_type} ${entry.object_id}`)],
    [
      h("span", { class: `badge ${BADGES[entry.outcome]}` }, entry.outcome),
      (entry.status || entry.problem) && h("div", { class: "quiet" }, [entry.status, entry.problem].filter(Boolean).join(" ")),
      entry.repeats > 0 && h("div", { class: "quiet" }, `and at least ${entry.repeats} more`),
    ],
  ];
}

/** `putTablePolicy` becomes `put table policy`. */
const words = (operation) => operation.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Returns the members that differ, each with its name and both values. */
function differences(before, after) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return names
    .filter((name) => JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after?.[name] ?? null))
    .map((name) => [sentence(name), change(before?.[name], after?.[name])]);
}

function change(before, after) {
  return [before !== undefined && h("del", {}, text(before)), before !== undefined && after !== undefined && " → ", after !== undefined && h("ins", {}, text(after))];
}

const text = (value) => (typeof value === "string" ? value || "“”" : JSON.stringify(value));
