// Tables with their last jobs, each a small field: the letters say the kind, the look says the outcome.

import { h } from "./dom.js";
import { ago, bytes, count, kindName, number, tableType } from "./format.js";
import { LETTERS } from "./kinds.js";
import { jobLink, lookOf, outcome, tableLink, time } from "./components.js";
import { brief } from "./problems.js";

const OUTCOMES = ["succeeded", "nothing to do", "refused", "failed", "running", "queued", "cancelled", "unknown"];
const HEADINGS = ["Table", "Problems", "Backlog", "Last commit", "Last jobs"];
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** `rows` are those of the overview. */
export function matrix(rows) {
  return h(
    "table",
    { "aria-label": "Tables", class: "matrix", onkeydown: walk },
    h("thead", {}, h("tr", {}, ...HEADINGS.map((heading) => h("th", { scope: "col" }, heading)))),
    h("tbody", {}, ...rows.map(row)),
  );
}

/** The letters and looks, in words. */
export function legend(rows) {
  const kinds = [...new Set(rows.flatMap((each) => each.jobs.map((job) => job.kind)))].sort();
  if (!kinds.length) return null;
  return h(
    "p",
    { class: "legend quiet", "data-key": "legend" },
    ...kinds.map((kind) => h("span", {}, h("b", {}, letters(kind)), ` ${kindName(kind).toLowerCase()}`)),
    ...OUTCOMES.map((words) => h("span", { class: `field-of ${lookOf(words)}` }, words)),
  );
}

function row(table) {
  const cells = [name(table), problems(table), backlog(table), table.last_commit_at ? time(table.last_commit_at) : "–", jobs(table)];
  return h("tr", { "data-key": table.id }, ...cells.map((cell, index) => h("td", { "data-label": HEADINGS[index] }, h("div", {}, cell))));
}

function name({ id, name: words, base_path: path, table_type: type, table_version: version, declared_buckets: declared, buckets, state }) {
  const kind = type && `${tableType({ table_type: type })} v${version ?? "?"}`;
  const number = declared && (buckets === declared ? count(buckets, "bucket") : `${count(buckets, "bucket")} (writers: ${declared})`);
  return [
    h("span", { class: "line" }, tableLink(id, h("strong", {}, words)), NOTED[state] && h("span", { class: "tag" }, NOTED[state])),
    h("div", { class: "path" }, path),
    h("small", {}, [kind, number].filter(Boolean).join(" · ")),
  ];
}

const NOTED = { unpolled: "not polled yet" };

function problems({ id, problems: every, problem_count: all, warnings, incidents: { suspected } }) {
  if (!every.length && !warnings.length) return h("span", { class: "quiet" }, "none");
  const items = h("ul", { class: "plain" }, ...warnings.map((each) => h("li", {}, each)));
  return [
    brief(every),
    all > every.length && tableLink(id, `and ${count(all - every.length, "more", "more")}`),
    suspected > 0 && h("span", { class: "tag warn" }, `${suspected} suspected`),
    warnings.length > 0 && h("details", {}, h("summary", {}, h("span", { class: "tag" }, count(warnings.length, "note"))), items),
  ];
}

function backlog({ backlog: its, table_type: type }) {
  if (!its) return "–";
  if (type === "COPY_ON_WRITE" || (!its.log_bytes && !its.commits)) return h("span", { class: "quiet" }, "none");
  const share = its.base_bytes > 0 && its.log_bytes > 0 && `${number(Math.round((100 * its.log_bytes) / its.base_bytes))} % of the base files`;
  return [`${bytes(its.log_bytes)} in logs`, h("small", {}, [share, `${count(its.commits, "commit")} since compaction`].filter(Boolean).join(", "))];
}

function jobs({ jobs: every, name: of }) {
  if (!every.length) return h("span", { class: "quiet" }, "none yet");
  // One stop of the tab key for each table; the arrow keys go on from there.
  return h("div", { class: "fields", role: "group", "aria-label": `Last jobs of ${of}, newest first` }, ...every.map((job, index) => field(job, index === 0)));
}

function field(job, isFirst) {
  const words = [kindName(job.kind), job.dry_run && "dry run", outcome(job), ago(job.finished_at ?? job.started_at ?? job.created_at), job.state !== "succeeded" && job.error];
  const text = words.filter(Boolean).join(", ");
  const link = jobLink(job, letters(job.kind));
  for (const [key, value] of Object.entries({ class: `field-of ${look(outcome(job))}${job.dry_run ? " dry" : ""}`, title: text, "aria-label": text, tabindex: isFirst ? "0" : "-1", "data-key": job.id })) link.setAttribute(key, value);
  return link;
}

const letters = (kind) => LETTERS[kind] ?? kind.slice(0, 2);
const look = (words) => (words === "leased" ? "running" : lookOf(words));

/** Moves the focus between the fields. */
function walk(event) {
  const step = STEPS[event.key];
  if (!step || !event.target.classList.contains("field-of")) return;
  const rows = [...event.currentTarget.querySelectorAll(".fields")];
  const at = rows.indexOf(event.target.closest(".fields"));
  const own = [...rows[at].children];
  const target = rows[at + step[0]]?.children;
  const place = own.indexOf(event.target) + step[1];
  const next = target && (target[place] ?? (step[0] ? target[target.length - 1] : null));
  if (!next) return;
  next.focus();
  event.preventDefault();
}
