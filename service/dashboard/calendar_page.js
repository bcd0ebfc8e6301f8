// Freezes and maintenance windows of a week: drawn, and as a table. Freezes are set and deleted here.

import { attempt, get, getTagged, NEW, send } from "./api.js";
import { asTable, box, drawing, scale, tracks } from "./chart.js";
import { confirmed } from "./dialogs.js";
import { h, svg } from "./dom.js";
import { count, moment, number, zone } from "./format.js";
import { card, field, grid, link, problem } from "./components.js";
import { windowsInWords } from "./quantities.js";
import { may } from "./role.js";
import { schemaFields } from "./schema_form.js";
import { membersOf } from "./schemas.js";

const HEADINGS = ["Freeze", "From", "To", "Tables", "Why", "Set by", ""];
const TABLE = ["What", "From", "To", "Tables"];
const KEPT = "v1/freezes";

export function calendarPage(changed, query = {}) {
  let week = mondayOf(query.week);
  let found = null;
  let freezes = null;
  let failure = null;
  let revision = 0;
  let chosen = {};

  async function load() {
    const asked = week;
    const [calendar, every] = await Promise.all([get("v1/calendar", { since: asked.toISOString(), until: later(asked, 7).toISOString() }), get(KEPT)]);
    if (asked !== week) return load();
    [found, freezes] = [calendar, every.items];
  }

  function draw() {
    if (!found) return [];
    return [
      h("h1", { "data-key": "title" }, "Calendar"),
      h("p", { class: "quiet narrow", "data-key": "about" }, `Automatic jobs start only in the windows of a table's `, link("#/policies", "policy"), ", and not during a freeze. Jobs that somebody submits start at any time."),
      drawWeek(),
      card("freezes", `Freezes (${freezes.length})`, grid("Freezes", HEADINGS, freezes.map((each) => ({ key: each.name, cells: cells(each) })), "There are no freezes.")),
      may("operator") && form(),
    ];
  }

  function drawWeek() {
    const end = later(week, 7);
    const go = (days) => () => changed.go({ week: dateOf(later(week, days)) });
    const button = (words, act) => h("button", { type: "button", class: "small", "data-key": words, onclick: act }, words);
    const frozen = found.freezes.map(({ freeze, tables, table_names: names }) => ({
      key: `freeze ${freeze.name}`,
      name: `Freeze ${freeze.name}`,
      look: "frozen",
      spans: [{ starts_at: freeze.starts_at, ends_at: freeze.ends_at }],
      words: `${count(tables, "table")}${freeze.reason ? `: ${freeze.reason}` : ""}`,
      names,
    }));
    const open = found.windows.map(({ source, windows, time_zone: where, spans, tables, table_names: names }) => ({
      key: `windows ${source} ${where} ${windowsInWords(windows)}`,
      name: source === "table" ? names.join(", ") : source,
      look: "open",
      spans,
      words: `${count(tables, "table")}: ${windowsInWords(windows)}, ${where}`,
      names,
    }));
    const rows = [...frozen, ...open];
    return card(
      "week",
      `${moment(week).slice(0, -10)} to ${moment(later(week, 6)).slice(0, -10)}`,
      h("div", { class: "line", "data-key": "weeks" }, button("The week before", go(-7)), button("This week", () => changed.go({})), button("The week after", go(7)), h("span", { class: "quiet" }, `Times of ${zone()}`)),
      rows.length
        ? h("div", { class: "week", "data-key": "lanes" }, days(week), tracks(rows.map((each) => lane(each, week, end))))
        : h("p", { class: "quiet" }, "There is no freeze, and no table has windows."),
      h("p", { class: "quiet" }, h("span", { class: "mark open" }), " jobs may start ", h("span", { class: "mark frozen" }), " frozen. ", `Tables without windows: ${number(found.always)}. Their jobs may start at any time.`),
      rows.length > 0 && asTable("Freezes and windows of the week", TABLE, rows.flatMap(lines)),
    );
  }

  function cells({ name, starts_at: from, ends_at: to, tables, reason, set_by: by }) {
    return [
      h("strong", {}, name),
      h("time", { datetime: from }, moment(from)),
      [h("time", { datetime: to }, moment(to)), Date.parse(to) < Date.now() && [" ", h("span", { class: "tag" }, "over")]],
      tables.join(", "),
      reason || "–",
      by,
      may("operator") && h("div", { class: "line" }, h("button", { type: "button", class: "small", "aria-label": `Edit ${name}`, onclick: () => edit(name) }, "Edit"), h("button", { type: "button", class: "small danger", "aria-label": `Delete ${name}`, onclick: () => remove(name) }, "Delete")),
    ];
  }

  async function edit(name) {
    try {
      const { document: freeze, tag } = await getTagged(`${KEPT}/${encodeURIComponent(name)}`);
      const { starts_at, ends_at, tables, reason } = freeze;
      [chosen, failure] = [{ name, tag, values: { starts_at, ends_at, tables, reason } }, null];
      revision += 1;
      changed.redraw();
      document.querySelector("[data-key=freeze] form input")?.focus();
    } catch (error) {
      changed(error);
    }
  }

  async function remove(name) {
    if (!(await confirmed(`Delete the freeze ${name}?`, "Automatic jobs of its tables start again when their policies allow it.", "Delete it"))) return;
    await send("DELETE", `${KEPT}/${encodeURIComponent(name)}`).then(() => changed(), changed);
  }

  function save(event) {
    event.preventDefault();
    const name = chosen.tag ? chosen.name : new FormData(event.target).get("name").trim();
    const put = () => send("PUT", `${KEPT}/${encodeURIComponent(name)}`, chosen.values ?? {}, chosen.tag ?? NEW);
    return attempt(() => put().then(clear), changed, (found) => (failure = found));
  }

  function clear() {
    [chosen, failure] = [{}, null];
    revision += 1;
  }

  function form() {
    const set = (name, value) => {
      chosen = { ...chosen, values: { ...chosen.values, [name]: value } };
      changed.redraw();
    };
    const cancel = () => {
      clear();
      changed.redraw();
    };
    const name = h("input", { name: "name", required: true, maxlength: 64, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*", spellcheck: "false", autocomplete: "off", placeholder: "black-friday", "data-key": `name ${revision}` });
    return card(
      "freeze",
      chosen.tag ? `Edit the freeze ${chosen.name}` : "Set a freeze",
      h(
        "form",
        { class: "narrow", onsubmit: save, "data-key": `form ${revision}` },
        !chosen.tag && field("Name", name),
        ...schemaFields(membersOf("FreezeIn"), chosen.values ?? {}, set, revision),
        failure && problem(failure),
        h("div", { class: "actions" }, h("button", { class: "primary" }, chosen.tag ? "Save" : "Set the freeze"), chosen.tag && h("button", { type: "button", onclick: cancel }, "Cancel")),
      ),
    );
  }

  return {
    title: () => "Calendar",
    load,
    draw,
    choose(wanted) {
      week = mondayOf(wanted.week);
    },
    isBusy: () => false,
  };
}

/** Returns the beginning of a date's week in the browser's time zone; without a date, of this week. */
function mondayOf(date) {
  const at = new Date(`${date}T00:00`);
  const day = Number.isNaN(at.getTime()) ? new Date() : at;
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() - ((day.getDay() + 6) % 7));
}

// Adds days by the calendar, because a day with a clock change does not have 24 hours.
const later = (day, days) => new Date(day.getFullYear(), day.getMonth(), day.getDate() + days);
const dateOf = (day) => [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, "0")).join("-");

function days(week) {
  const names = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric" });
  return h("div", { class: "days", "aria-hidden": "true" }, h("span", {}), h("div", {}, ...[0, 1, 2, 3, 4, 5, 6].map((each) => h("span", {}, names.format(later(week, each))))), h("span", {}));
}

function lane({ key, name, look, spans, words }, week, end) {
  const across = scale(week.getTime(), end.getTime());
  const shapes = spans.map(({ starts_at: from, ends_at: to }) => {
    const [left, right] = [across(Date.parse(from)), across(Date.parse(to))];
    return box(look, left, Math.max(3, right - left), `${moment(from)} to ${moment(to)}`);
  });
  const lines = [1, 2, 3, 4, 5, 6].map((each) => svg("path", { class: "tick", d: `M ${across(later(week, each).getTime())} 0 V 100`, "vector-effect": "non-scaling-stroke" }));
  const now = Date.now();
  const mark = now >= week && now < end && box("now", across(now), 3, "now");
  const spanTexts = spans.slice(0, 10).map(({ starts_at: from, ends_at: to }) => `${moment(from)} to ${moment(to)}`);
  return { key, name, words, picture: drawing("lane", `${name}, ${words}: ${spanTexts.join("; ") || "not in this week"}`, ...lines, ...shapes, mark) };
}

function lines({ key, name, spans, names }) {
  return spans.map(({ starts_at: from, ends_at: to }, index) => ({ key: `${key} ${index}`, cells: [name, moment(from), moment(to), names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${number(names.length - 5)} more` : "") || "none"] }));
}
