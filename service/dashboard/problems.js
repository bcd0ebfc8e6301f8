// The problems of a table, and the notice of a problem with its cause, consequence, remedy and command.

import { get, send } from "./api.js";
import { acknowledgement } from "./acknowledgement.js";
import { command } from "./command.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { kindName } from "./format.js";
import { card, jobLink, link, prose, tableLink, time } from "./components.js";
import { may } from "./role.js";

const MOST_READ = 100;

const LOOKS = { critical: "bad", warning: "warn", notice: "note" };
// The notices of incidents already show problems of these kinds, with each instant.
const SHOWN_ELSEWHERE = ["incident-standing"];

/** The problems of one table. */
export class Problems {
  constructor(tableId) {
    this.tableId = tableId;
    this.items = null;
  }

  async load() {
    this.items = (await get("v1/problems", { table_id: this.tableId, limit: MOST_READ })).items;
  }

  /** Shows the most serious problem in full, and the others in one line each. If notices of incidents are above the
   * problems (`isBelowIncidents`), each problem has one line. `jobs` are the active jobs. */
  draw(jobs, changed, { isBelowIncidents = false } = {}) {
    if (!this.items) return null;
    if (!this.items.length) return h("p", { class: "problem good", "data-key": "verdict" }, h("strong", {}, "Nothing is wrong"), " that the service knows of.");
    const all = this.items.filter((each) => !SHOWN_ELSEWHERE.includes(each.kind));
    if (!all.length) return null;
    const [first, ...others] = isBelowIncidents ? [null, ...all] : all;
    return h(
      "section",
      { "data-key": "problems", "aria-label": "Problems" },
      first && h("ul", { class: "plain" }, notice(first, jobs, changed)),
      others.length > 0 && h("div", { class: "card groups" }, ...others.map((each) => inShort(each, jobs, changed))),
    );
  }
}

function inShort(problem, jobs, changed) {
  return h(
    "details",
    { class: "group", "data-key": problem.id },
    h(
      "summary",
      {},
      tag(problem.severity, problem.severity),
      h("strong", {}, problem.title),
      h("span", { class: "about" }, problem.detail),
      h("span", { class: "quiet remedy" }, ...prose(problem.remedy)),
      h("span", { class: "quiet since" }, time(problem.since)),
    ),
    h("ul", { class: "plain" }, notice(problem, jobs, changed)),
  );
}

export const sum = (counts) => Object.values(counts).reduce((total, each) => total + each, 0);

export const tag = (severity, words) => h("span", { class: `tag ${LOOKS[severity]}` }, words);

export function notice(problem, jobs, changed) {
  const { id, severity, about, since, title, detail, consequence, remedy } = problem;
  return h(
    "li",
    { class: `problem ${LOOKS[severity]}`, "data-key": id },
    h("span", { class: "line" }, tag(severity, severity), h("strong", {}, object(about), ": ", title), h("span", { class: "quiet" }, "since ", time(since))),
    h("p", {}, detail),
    h("p", {}, ...prose(consequence)),
    h("p", { class: "hint" }, ...prose(remedy)),
    command(problem.command, `${title}, ${about.name}`),
    problem.action && may("operator") && remedyOf(problem, jobs, changed),
    acknowledgement(problem, changed),
  );
}

function object({ type, id, name }) {
  if (type === "table") return tableLink(id, name);
  if (type === "webhook") return link(`#/webhooks/${encodeURIComponent(id)}`, `Webhook ${name}`);
  if (type === "group") return link("#/workers", `Worker group ${name}`);
  if (type === "catalog") return `Catalog ${name}`;
  return type === "worker" ? link("#/workers", `Worker ${name}`) : name;
}

function remedyOf({ about, action, remedy }, jobs, changed) {
  if (action.method === "GET") {
    return about.type === "table" && h("div", { class: "actions" }, tableLink(about.id, `${action.label} of ${about.name}`));
  }
  const isJob = action.path.endsWith("/jobs");
  const running = isJob && jobs.find((job) => job.table_id === about.id && job.kind === action.body.kind && !job.dry_run);
  if (running) return h("p", {}, jobLink(running, `${kindName(running.kind)} is ${running.state}.`));
  const label = isJob ? `${action.label} ${about.name}` : action.label;
  const start = async () => {
    if (!(await confirmed(`${label}?`, remedy, action.label))) return;
    await send(action.method, action.path.slice(1), action.body ?? undefined).then(() => changed(), changed);
  };
  return h("div", { class: "actions" }, h("button", { type: "button", class: "small", onclick: start }, label));
}
