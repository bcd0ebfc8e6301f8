// The work of the service in a period, by table, owner or tag, and the cost of this work. The address contains the
// period and the choice of groups.

import { get, problemOf, Refused } from "./api.js";
import { asTable, box, drawing, tracks, WIDTH } from "./chart.js";
import { card, field, grid, link, pairs, problem, select, tableLink } from "./components.js";
import { h } from "./dom.js";
import { FleetTrend } from "./fleet_trend.js";
import { DAY_MS, bytes, count, kindName, moment, number, seconds, sentence } from "./format.js";
import { address } from "./route.js";

const PERIODS = [
  ["", "last 7 days"],
  ["day", "last 24 hours"],
  ["week", "last week"],
  ["days", "last 30 days"],
  ["month", "last month"],
  ["own", "from … to"],
];
const GROUPS = ["table", "owner", "tag", "kind"];
const UNPROCESSABLE = 422;
const MOST = 100;
const MOST_BARS = 12;
const inHours = (value) => (value > 0 && value < 360 ? (value / 3600).toPrecision(1) : (value / 3600).toFixed(value < 36_000 ? 1 : 0));
const hours = (value) => (value < 3600 ? seconds(value) : `${inHours(value)} h`);
const gbHours = (value) => `${inHours(value)} GB-hours`;
const whole = (value) => number(Math.round(value));
/** The figures: the name, the heading, a function that formats the value, and whether bars may show the value. */
const FIGURES = [
  ["succeeded", "Succeeded", whole, true],
  ["failed", "Failed", whole, true],
  ["freed_bytes", "Freed", bytes, true],
  ["log_files", "Logs merged", whole, true],
  ["files_before", "Files before", whole, false],
  ["files_after", "Files after", whole, false],
  ["seconds", "Workers", hours, true],
  ["gb_seconds", "Memory", gbHours, true],
  ["locked_seconds", "Locked", seconds, true],
  ["stopped_seconds", "Flink stopped", seconds, true],
  ["cost", "Cost", (value) => value.toFixed(2), true],
];

export function reportPage(changed, query = {}) {
  const trend = new FleetTrend();
  let chosen = query;
  let found = null;
  let failure = null;
  let bar = "seconds";

  async function load() {
    const asked = chosen;
    const period = periodOf(asked);
    const of = { by: GROUPS.includes(asked.by) ? asked.by : "table", owner: asked.owner, tag: asked.tag?.split(",").map((each) => each.trim()) };
    try {
      const [report] = await Promise.all([get("v1/report", { ...period, ...of, limit: MOST }), trend.load(period)]);
      if (asked === chosen) [found, failure] = [report, null];
    } catch (error) {
      // The form stays, so that the user can correct the period or the tag.
      if (!(error instanceof Refused) || error.status !== UNPROCESSABLE) throw error;
      if (asked === chosen) [found, failure] = [null, problemOf(error)];
    }
  }

  const pick = (name) => (event) => changed.go({ ...chosen, [name]: event.target.value.trim() });

  function show(event) {
    event.preventDefault();
    const { since, until } = event.target.elements;
    if (since) changed.go({ ...chosen, since: since.value, until: until.value });
  }

  function choices() {
    const isOwn = kindOf(chosen) === "own";
    const day = (label, name) => field(label, h("input", { type: "date", name, value: (chosen[name] ?? "").slice(0, 10), required: true }));
    const text = (label, name, hint) => field(label, h("input", { type: "search", name, autocomplete: "off", maxlength: "400", placeholder: hint, value: chosen[name], onchange: pick(name) }));
    const choosePeriod = (event) => changed.go({ ...chosen, period: event.target.value, ...ownOf(event.target.value, found) });
    return h(
      "form",
      { class: "filters wide", "data-key": "choices", onsubmit: show },
      field("Period", select({ onchange: choosePeriod, name: "period" }, PERIODS, kindOf(chosen))),
      isOwn && day("From", "since"),
      isOwn && day("To (exclusive)", "until"),
      field("By", select({ onchange: pick("by"), name: "by" }, GROUPS.map((each) => [each, each]), chosen.by ?? "table")),
      text("Owner", "owner", "any"),
      text("Tag", "tag", "key or key=value"),
      h("div", { class: "actions" }, isOwn && h("button", {}, "Show"), h("button", { type: "button", onclick: () => print() }, "Print")),
    );
  }

  function draw() {
    const title = h("h1", { "data-key": "title" }, "Report");
    if (!found) return failure ? [title, choices(), problem(failure)] : [];
    return [
      title,
      h("p", { class: "quiet", "data-key": "period" }, `${moment(found.since)} to ${moment(found.until)}`, chosen.owner && `, owner ${chosen.owner}`, chosen.tag && `, tag ${chosen.tag}`),
      choices(),
      card("totals", "In all", totals(found)),
      groups(),
      problems(found.problems),
      trend.draw(),
    ];
  }

  function groups() {
    const title = `By ${found.by}`;
    if (!found.groups.length) return card("groups", title, h("p", { class: "quiet" }, "Nothing ran in this period."));
    const bars = FIGURES.filter(([name, , , isBar]) => isBar && found.total[name] > 0);
    const [name, , shown] = bars.find(([each]) => each === bar) ?? bars[0] ?? FIGURES[0];
    const choose = (event) => {
      bar = event.target.value;
      changed.redraw();
    };
    const figures = FIGURES.filter(([each]) => found.total[each] > 0 || ["succeeded", "failed", "seconds"].includes(each));
    return card(
      "groups",
      title,
      h("div", { class: "filters" }, field("Bars show", select({ onchange: choose, name: "bar" }, bars.map(([each, words]) => [each, words.toLowerCase()]), name))),
      barChart(found, name, shown),
      h("div", { class: "scroll figures-table", tabindex: "0", role: "group", "aria-label": `${title}, as a table` }, grid(title, [sentence(found.by), ...figures.map(([, words]) => words)], found.groups.map((each) => row(each, figures)))),
      found.left_out > 0 && h("p", { class: "quiet" }, `Only the ${MOST} with the most working time are listed. The sums include ${number(found.left_out)} more.`),
    );
  }

  function row(group, figures) {
    return { key: group.key ?? "", cells: [nameOf(group), ...figures.map(([name, , shown]) => (group.figures[name] == null ? "–" : shown(group.figures[name])))] };
  }

  function nameOf({ key, name }) {
    if (found.by === "table") return name ? tableLink(key, name) : [h("code", {}, key), " (not registered any more)"];
    return wordsOf(found, { key, name });
  }

  return {
    title: () => "Report",
    load,
    draw,
    choose: (wanted) => {
      chosen = wanted;
    },
    isBusy: () => false,
    says: () => found && `${count(found.total.succeeded, "attempt")} succeeded, ${number(found.total.failed)} failed`,
  };
}

const wordsOf = ({ by }, { key, name }) => (by === "kind" ? kindName(key) : (name ?? key ?? `without ${by === "owner" ? "an owner" : "a tag"}`));

function totals({ tables, total }) {
  return pairs(
    ["Tables", number(tables)],
    ["Attempts", `${number(total.succeeded)} succeeded, ${number(total.failed)} failed`],
    ["Freed", `${bytes(total.freed_bytes)} in ${count(Math.round(total.files_deleted), "file")}`],
    ["Log files merged", `${whole(total.log_files)} (${bytes(total.log_bytes)})`],
    ["Files rewritten", `${whole(total.files_before)} into ${whole(total.files_after)}`],
    ["Workers", `${hours(total.seconds)}, ${gbHours(total.gb_seconds)}`],
    ["Cost", total.cost != null && total.cost.toFixed(2)],
    ["Writers waited", `at most ${seconds(total.locked_seconds)} for locks`],
    ["Flink stopped for", seconds(total.stopped_seconds)],
  );
}

function barChart(found, name, shown) {
  const sorted = [...found.groups].sort((one, other) => (other.figures[name] ?? 0) - (one.figures[name] ?? 0));
  const most = sorted[0].figures[name] ?? 0;
  const rows = sorted.slice(0, MOST_BARS).map((each) => {
    const value = each.figures[name] ?? 0;
    const words = `${wordsOf(found, each)}: ${shown(value)}`;
    return { key: each.key ?? "", name: wordsOf(found, each), picture: drawing("bar", words, value > 0 && box("fine", 0, Math.max(2, (value / most) * WIDTH), words)), words: shown(value) };
  });
  return tracks(rows);
}

function problems({ opened, resolved, open, kinds }) {
  const words = `${number(opened)} opened, ${number(resolved)} resolved; ${number(open)} are open now`;
  return card(
    "problems",
    "Problems",
    h("p", {}, words, ". ", link(address([], {}), "Show the open problems")),
    kinds.length > 0 && asTable("Problems by kind", ["Kind", "Opened", "Resolved"], kinds.map((each) => ({ key: each.kind, cells: [sentence(each.kind.replaceAll("-", " ")), number(each.opened), number(each.resolved)] }))),
  );
}

const kindOf = ({ period, since, until }) => period || (since || until ? "own" : "");

/** Returns the initial values of the fields in which a user enters a period: the days that were shown before. */
function ownOf(period, found) {
  if (period !== "own" || !found) return { since: "", until: "" };
  return { since: local(new Date(found.since)), until: local(new Date(Date.parse(found.until) + DAY_MS)) };
}

const local = (at) => `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;

/** Returns the beginning and the end of the period. Days begin and end in the browser's time zone. */
function periodOf(chosen) {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const day = (year, month, date) => new Date(year, month, date).toISOString();
  const [year, month, date] = [today.getFullYear(), today.getMonth(), today.getDate()];
  const monday = date - ((today.getDay() + 6) % 7);
  switch (kindOf(chosen)) {
    case "day":
      return { since: new Date(Date.now() - DAY_MS).toISOString() };
    case "week":
      return { since: day(year, month, monday - 7), until: day(year, month, monday) };
    case "days":
      return { since: new Date(Date.now() - 30 * DAY_MS).toISOString() };
    case "month":
      return { since: day(year, month - 1, 1), until: day(year, month, 1) };
    case "own":
      return { since: instantOf(chosen.since), until: instantOf(chosen.until) };
    default:
      return { since: new Date(Date.now() - 7 * DAY_MS).toISOString() };
  }
}

/** Parses a day from the form, or a moment from a link in a message. The service refuses other texts. */
function instantOf(text) {
  if (!text) return undefined;
  const at = new Date(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00` : text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}
