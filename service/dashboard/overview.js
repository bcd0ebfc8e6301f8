// The first page: problems, active jobs, and a page of tables with their last jobs. One call gets all of these data.

import { Active } from "./active.js";
import { get } from "./api.js";
import { h } from "./dom.js";
import { count, number } from "./format.js";
import { field, link, select } from "./components.js";
import { PROBLEMS } from "./kinds.js";
import { pauseNotice } from "./pause.js";
import { ProblemGroups } from "./problem_groups.js";
import { may } from "./role.js";
import { address } from "./route.js";
import { SavedViews } from "./saved_views.js";
import { Selection } from "./selection.js";
import { stateLine } from "./state_line.js";
import { Suggestions } from "./suggestions.js";
import { legend, tableList } from "./table_list.js";

const TYPING_MS = 250;
// The numbers of rows and jobs that are drawn first, so that the browser can show them while the others are drawn.
const FIRST = 10;
const HEALTHS = ["critical", "warning", "notice", "healthy"];
const ORDERS = [
  ["", "most serious"],
  ["name", "name"],
  ["backlog", "largest backlog"],
  ["ratio", "largest log ratio"],
  ["commit", "latest commit"],
  ["silent", "longest without a commit"],
  ["registered", "newest"],
];
const STATES = ["unreadable", "unpolled", "busy", "idle"];
const FILTERS = ["q", "health", "kind", "table_type", "state", "owner", "tag", "sort"];

/** `query` is the query of the address: the filter, the order and the page. */
export function overview(changed, query = {}) {
  const active = new Active();
  const problems = new ProblemGroups();
  const suggestions = new Suggestions();
  const views = new SavedViews();
  const selection = new Selection(changed);
  let chosen = query;
  let found = null;
  let isMoved = false;
  let typing = null;
  let isWhole = false;

  async function load() {
    const asked = chosen;
    const answer = await get("v1/overview", known(asked));
    if (asked !== chosen) return;
    await problems.take(answer.problems);
    // The forecast is left out here, because the state line above contains the forecast.
    active.take(answer.jobs.items, {});
    suggestions.take(answer.suggestions);
    found = answer;
  }

  function draw() {
    if (!found) return [];
    const total = found.jobs.queued + found.jobs.leased + found.jobs.running;
    const wrong = problems.draw(active.jobs, changed);
    const work = total > 0 && active.draw(true, changed, { total, most: isWhole ? undefined : FIRST });
    if (!isWhole) afterFrame(drawAll);
    return [
      h("h1", { class: "unseen", "data-key": "title" }, "Overview"),
      search(),
      stateLine(found),
      pauseNotice(found.pause, changed),
      // After a search, the found tables are above everything else.
      ...(isNarrowed() ? [tables(), wrong, work] : [wrong, work, tables()]),
      ...suggestions.draw(),
    ];
  }

  function drawAll() {
    if (isWhole) return;
    isWhole = true;
    changed.redraw();
  }

  const isNarrowed = () => FILTERS.some((name) => name !== "sort" && chosen[name]);

  function search() {
    const type = (event) => {
      clearTimeout(typing);
      const box = event.target;
      // If the user has gone to another page meanwhile, a query in its address would empty the form of that page.
      typing = setTimeout(() => box.isConnected && changed.go({ ...chosen, q: box.value.trim(), cursor: "" }, { isTyped: true }), TYPING_MS);
    };
    const properties = { type: "search", id: "search", value: chosen.q, oninput: type, maxlength: "200", autocomplete: "off", "aria-label": "Name or path", placeholder: "Search tables by name or path  ( / )" };
    return h("div", { class: "search", role: "search", "data-key": "search" }, h("input", properties), views.draw(chosen, changed));
  }

  function tables() {
    const { items, total, matching, before, next_cursor: next } = found.tables;
    const title = isNarrowed() ? `Tables (${number(matching)} of ${number(total)})` : `Tables (${number(total)})`;
    if (isMoved) setTimeout(() => document.getElementById("tables")?.focus());
    isMoved = false;
    return h(
      "section",
      { class: "card", id: "tables", tabindex: "-1", "data-key": "tables", "aria-label": title },
      h("div", { class: "line" }, h("h2", {}, total ? title : "Tables"), total > 0 && filters(), total > 0 && views.drawDensity(changed)),
      may("operator") && selection.draw(),
      total === 0 ? noTables() : items.length ? h("div", { class: "rows", "data-key": "rows" }, tableList(isWhole ? items : items.slice(0, FIRST), chosen, views.density, may("operator") ? selection : null)) : h("p", { class: "quiet" }, "No matching tables."),
      (next || chosen.cursor) &&
        h(
          "nav",
          { class: "pages", "aria-label": "Pages of tables", "data-key": "pages" },
          items.length > 0 && h("span", { class: "quiet" }, `${number(before + 1)} to ${number(before + items.length)} of ${number(matching)}`),
          chosen.cursor && link(address([], { ...chosen, cursor: "" }), "First page"),
          next && link(address([], { ...chosen, cursor: next }), "Next page"),
        ),
      legend(items),
    );
  }

  function filters() {
    const pick = (name) => (event) => event.target.reportValidity() && changed.go({ ...chosen, [name]: event.target.value.trim(), cursor: "" });
    const chooser = (label, name, choices) => field(label, select({ onchange: pick(name), name }, choices, chosen[name] ?? ""));
    const any = (words, choices) => [["", words], ...choices];
    const text = (label, name, pattern, known) => [
      field(label, h("input", { name, pattern, value: chosen[name], onchange: pick(name), list: `every-${name}`, placeholder: "any", maxlength: 200, autocomplete: "off", spellcheck: "false" })),
      h("datalist", { id: `every-${name}`, "data-key": `every-${name}` }, ...[...new Set(found.tables.items.flatMap(known))].sort().map((value) => h("option", { value }))),
    ];
    const isChosen = FILTERS.some((name) => name !== "q" && chosen[name]);
    // In narrow windows the filters are hidden until the user opens them.
    return h(
      "details",
      { class: "narrowing", "data-key": "filters", open: isChosen || matchMedia("(min-width: 761px)").matches },
      h("summary", {}, "Filter and order"),
      h(
        "div",
        { class: "filters tight" },
        chooser("Health", "health", any("any", HEALTHS.map((each) => [each, each]))),
        chooser("Problem", "kind", any("any", PROBLEMS.map((kind) => [kind, kind.replaceAll("-", " ")]))),
        chooser("Type", "table_type", any("any", [["MERGE_ON_READ", "merge on read"], ["COPY_ON_WRITE", "copy on write"]])),
        chooser("State", "state", any("any", STATES.map((each) => [each, each]))),
        ...text("Owner", "owner", ".*\\S.*", ({ owner }) => owner ?? []),
        ...text("Tag", "tag", "[A-Za-z0-9]([A-Za-z0-9_.\\/\\-]*[A-Za-z0-9])?(=.*)?", ({ tags }) => Object.entries(tags).map(([key, value]) => (value ? `${key}=${value}` : key))),
        chooser("Sort by", "sort", ORDERS),
      ),
    );
  }

  return {
    title: () => "Overview",
    load,
    draw,
    /** Changes filter, order or page. */
    choose(wanted) {
      isMoved = (wanted.cursor ?? "") !== (chosen.cursor ?? "");
      chosen = wanted;
      const search = document.getElementById("search");
      if (search && search !== document.activeElement) search.value = wanted.q ?? "";
      for (const box of document.querySelectorAll("#tables .filters [name]")) box.value = wanted[box.name] ?? "";
    },
    isBusy: () => active.isMoving,
    refresh: () => active.refresh(),
    asOf: () => found && Date.parse(found.problems.as_of ?? ""),
    at: () => Date.parse(found.at),
    position: () => found.event_id,
    /** Returns the state of the page in words for screen readers. */
    says: () => found && said(found, chosen),
  };
}

/** Calls `action` after the browser has shown what is drawn now. A hidden page shows nothing, so `action` is called at
 * once. */
function afterFrame(action) {
  requestAnimationFrame(() => setTimeout(action));
  setTimeout(action, 100);
}

/** Returns only the parameters of the address that the service knows. */
const known = (chosen) => Object.fromEntries([["brief", "true"], ...[...FILTERS, "cursor", "limit"].map((name) => [name, chosen[name]])]);

function said({ problems: { counts, as_of: asOf }, tables: { matching, total } }, chosen) {
  if (!asOf) return "The problems are being counted";
  const words = Object.entries(counts).filter(([, many]) => many > 0).map(([severity, many]) => `${number(many)} ${severity}`);
  const shown = chosen.q || matching !== total ? `, ${count(matching, "matching table")}` : "";
  return `${words.length ? `Problems: ${words.join(", ")}` : "No problems"}${shown}`;
}

function noTables() {
  return [
    h("p", { class: "quiet" }, "No table is registered yet."),
    may("admin") && h("p", {}, link(address(["register"], {}), "Register a table")),
    h("p", { class: "quiet" }, "Tables can also be registered with ", h("code", {}, "groundskeeper tables add PATH"), " or ", h("code", {}, "POST /v1/tables"), "; see the ", link("docs", "API documentation"), "."),
  ];
}
