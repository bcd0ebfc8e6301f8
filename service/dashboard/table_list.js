// The tables of the overview, one line each. The last jobs are small fields: letters for the kind, and colours for the
// outcome.

import { drawing, steps, WIDTH } from "./chart.js";
import { h } from "./dom.js";
import { ago, bytes, count, kindName, number, plain, tableType } from "./format.js";
import { LETTERS } from "./kinds.js";
import { jobLink, link, lookOf, outcome, tableLink, time } from "./components.js";
import { tag } from "./problems.js";
import { address } from "./route.js";

const OUTCOMES = ["succeeded", "nothing to do", "refused", "failed", "running", "queued", "cancelled", "unknown"];
const SHOWN_JOBS = 4;
// A ratio above this limit is shown as a multiple, because its percentage would be hard to read.
const MANY_TIMES = 10;
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** The columns: the key, the heading, the order of tables that a click on the heading chooses, and the content for a
 * row. The columns of owners and tags are shown only if a table has an owner or a tag. */
const COLUMNS = [
  ["name", "Table", "name", name],
  ["owner", "Owner", null, ({ owner }) => h("span", { title: owner }, owner ?? "–")],
  ["tags", "Tags", null, ({ tags }) => Object.entries(tags).map(([key, value]) => [h("span", { class: "tag", title: value ? `${key}=${value}` : key, "data-key": key }, value ? `${key}=${value}` : key), " "])],
  ["health", "Health", "problems", health],
  ["now", "What now", null, now],
  ["ratio", "Log ratio", "ratio", ratio],
  ["commit", "Last commit", "commit", (table) => (table.last_commit_at ? time(table.last_commit_at) : "–")],
  ["jobs", "Last jobs", null, jobs],
  ["next", "Next job", null, next],
];
const OPTIONAL = { owner: ({ owner }) => owner !== null, tags: ({ tags }) => Object.keys(tags).length > 0 };

/** `rows` come from the overview, `query` from the address; `selection` is null for callers who may only read. */
export function tableList(rows, query, density, selection) {
  const columns = COLUMNS.filter(([key]) => !OPTIONAL[key] || rows.some(OPTIONAL[key]));
  return h(
    "table",
    { "aria-label": "Tables", class: `matrix ${density}`, onkeydown: (event) => walk(event, selection) },
    h("thead", {}, h("tr", {}, selection?.drawHead(rows), ...columns.map((each) => heading(each, query)))),
    h("tbody", {}, ...rows.map((each) => row(each, columns, selection))),
  );
}

function heading([key, words, order], query) {
  if (!order) return h("th", { scope: "col", class: `c-${key}` }, words);
  const isChosen = (query.sort || "problems") === order;
  const shown = link(address([], { ...query, sort: order === "problems" ? "" : order, cursor: "" }), words);
  return h("th", { scope: "col", class: `c-${key}`, "aria-sort": isChosen ? "other" : null }, shown);
}

function row(table, columns, selection) {
  return h(
    "tr",
    { "data-key": table.id, class: selection?.has(table) ? "chosen" : null },
    selection?.drawCell(table),
    ...columns.map(([key, words, , shown]) => h("td", { class: `c-${key}`, "data-label": words }, h("div", {}, shown(table)))),
  );
}

/** Returns an explanation of the letters and colours. */
export function legend(rows) {
  const kinds = [...new Set(rows.flatMap((each) => each.jobs.slice(0, SHOWN_JOBS).map((job) => job.kind)))].sort();
  if (!kinds.length) return null;
  return h(
    "details",
    { "data-key": "legend" },
    h("summary", { class: "quiet" }, "Letters and colours of the jobs"),
    h(
      "p",
      { class: "legend quiet" },
      ...kinds.map((kind) => h("span", {}, h("b", {}, letters(kind)), ` ${kindName(kind).toLowerCase()}`)),
      ...OUTCOMES.map((words) => h("span", { class: `field-of ${lookOf(words)}` }, words)),
    ),
  );
}

function name({ id, name: words, base_path: path, table_type: type, table_version: version, declared_buckets: declared, buckets, state }) {
  const kind = type && `${tableType({ table_type: type })} v${version ?? "?"}`;
  const many = declared && (buckets === declared ? count(buckets, "bucket") : `${count(buckets, "bucket")} (writers: ${declared})`);
  const shown = tableLink(id, h("strong", {}, words));
  shown.setAttribute("title", path);
  return [
    shown,
    state === "unpolled" && [" ", h("span", { class: "tag" }, "not polled yet")],
    h("small", { class: "about" }, [path, kind, many].filter(Boolean).join(" · ")),
  ];
}

function health({ health: severity, problems: [first], problem_count: all, warnings, incidents: { suspected } }) {
  const notes = warnings.length > 0 && h("span", { class: "quiet", title: ["Found when the table was examined:", ...warnings].join("\n") }, ` ${count(warnings.length, "remark")}`);
  if (!first) return [h("span", { class: severity ?? "quiet" }, severity ?? "…"), notes];
  return [
    tag(first.severity, first.severity),
    h("span", { class: "words" }, ` ${first.title}`),
    all > 1 && h("b", {}, ` +${number(all - 1)}`),
    suspected > 0 && h("span", { class: "quiet" }, ` ${suspected} suspected`),
    notes,
  ];
}

function now({ problems: [first] }) {
  return first ? h("span", { title: plain(first.remedy) }, plain(first.remedy)) : h("span", { class: "quiet" }, "–");
}

function ratio({ name: of, log_ratio: value, log_ratios: values, backlog, table_type: type }) {
  if (!backlog || type === "COPY_ON_WRITE" || value == null) return h("span", { class: "quiet" }, "–");
  const most = Math.max(...values, 0);
  const words = percent(value);
  const backlogText = `${bytes(backlog.log_bytes)} in logs, ${count(backlog.commits, "commit")} since compaction`;
  const points = values.map((each, index) => [(index * WIDTH) / Math.max(1, values.length - 1), most ? each / most : 0]);
  return [
    points.length > 1 && drawing("spark", `Log ratio of ${of} over the last day: now ${words}, at most ${percent(most)}`, ...steps(points)),
    h("span", { title: backlogText }, words),
    h("small", { class: "about" }, backlogText),
  ];
}

function percent(value) {
  if (value >= MANY_TIMES) return `${number(Math.round(value))} ×`;
  return value > 0 && value < 0.01 ? "< 1 %" : `${number(Math.round(value * 100))} %`;
}

function jobs({ jobs: every, name: of }) {
  if (!every.length) return h("span", { class: "quiet" }, "none yet");
  // The tab key stops once at each table; the arrow keys move between the fields of a table.
  return h("span", { class: "fields", role: "group", "aria-label": `Last jobs of ${of}, newest first` }, ...every.slice(0, SHOWN_JOBS).map((job, index) => field(job, index === 0)));
}

function field(job, isFirst) {
  const words = [kindName(job.kind), job.dry_run && "dry run", outcome(job), ago(job.finished_at ?? job.started_at ?? job.created_at), job.state !== "succeeded" && job.error];
  const text = words.filter(Boolean).join(", ");
  const shown = jobLink(job, letters(job.kind));
  for (const [key, value] of Object.entries({ class: `field-of ${look(outcome(job))}${job.dry_run ? " dry" : ""}`, title: text, "aria-label": text, tabindex: isFirst ? "0" : "-1", "data-key": job.id })) shown.setAttribute(key, value);
  return shown;
}

const letters = (kind) => LETTERS[kind] ?? kind.slice(0, 2);
const look = (words) => (words === "leased" ? "running" : lookOf(words));

function next({ next_job: found }) {
  if (!found) return h("span", { class: "quiet" }, "–");
  const words = `${kindName(found.kind)} ${found.state}`;
  return found.job_id ? jobLink({ id: found.job_id }, words) : h("span", { title: found.because }, words);
}

/** Moves the focus between the names of the tables, and between the fields. The key `x` selects the row. */
function walk(event, selection) {
  const shown = event.target.closest("tbody tr");
  if (!shown || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "x" && selection) {
    shown.querySelector("input[type=checkbox]")?.click();
    event.preventDefault();
    return;
  }
  const step = STEPS[event.key];
  if (!step) return;
  const target = event.target.classList.contains("field-of") ? besides(event.target, step) : step[0] && beyond(shown, step[0])?.querySelector(".c-name a");
  if (!target) return;
  target.focus();
  event.preventDefault();
}

const beyond = (shown, step) => (step > 0 ? shown.nextElementSibling : shown.previousElementSibling);

function besides(shown, step) {
  const rows = [...shown.closest("tbody").querySelectorAll(".fields")];
  const at = rows.indexOf(shown.closest(".fields"));
  const target = rows[at + step[0]]?.children;
  const place = [...rows[at].children].indexOf(shown) + step[1];
  return target && (target[place] ?? (step[0] ? target[target.length - 1] : null));
}
