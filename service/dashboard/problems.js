// Everything that is wrong now, the most serious first, with what to do.

import { get, send } from "./api.js";
import { command } from "./command.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count, kindName, number } from "./format.js";
import { card, jobLink, link, tableLink, time } from "./components.js";
import { may } from "./role.js";

const MOST_READ = 500;
const SHOWN = 5;

const LOOKS = { critical: "bad", warning: "warn", notice: "note" };
const COUNTED = {
  critical: (many) => `${number(many)} critical`,
  warning: (many) => count(many, "warning"),
  notice: (many) => count(many, "notice"),
};
// The notices of incidents show these, with each instant.
const SHOWN_ELSEWHERE = ["incident-standing"];

export class Problems {
  /** Problems of one table, or of all. */
  constructor(query = {}) {
    this.query = query;
    this.items = null;
    this.counts = {};
    this.isWhole = false;
  }

  async load() {
    const page = await get("v1/problems", { ...this.query, limit: MOST_READ });
    this.items = page.items;
    this.counts = page.counts;
  }

  /** Takes the most serious ones that another call has brought. If all are shown, those are asked for. */
  async take({ items, counts }) {
    if (this.isWhole && items.length < sum(counts)) {
      await this.load();
      return;
    }
    this.items = items;
    this.counts = counts;
  }

  of(tableId) {
    return (this.items ?? []).filter((each) => each.table_id === tableId);
  }

  /** `jobs` are active. Draws nothing on a table's own page while there are no problems; there the notices of incidents
   * show those. */
  draw(jobs, changed, { isQuiet = false } = {}) {
    if (!this.items) return null;
    const total = sum(this.counts);
    const others = isQuiet ? this.items.filter((each) => !SHOWN_ELSEWHERE.includes(each.kind)) : this.items;
    const hidden = total - this.items.length;
    if (!others.length) {
      if (isQuiet || total) return null;
      return card("problems", "Problems", h("p", { class: "quiet" }, "None that the service knows of."));
    }
    const shown = this.isWhole ? others : others.slice(0, SHOWN);
    const toggle = () => {
      this.isWhole = !this.isWhole;
      if (this.isWhole && hidden > 0) changed();
      else changed.redraw();
    };
    return card(
      "problems",
      `Problems (${number(total)})`,
      isQuiet && h("p", { class: "line" }, ...Object.keys(LOOKS).map((each) => this.counts[each] > 0 && tag(each, COUNTED[each](this.counts[each])))),
      h("ul", { class: "plain" }, ...shown.map((each) => notice(each, jobs, changed))),
      others.length > SHOWN && h("button", { type: "button", class: "more", onclick: toggle }, this.isWhole ? "Show fewer" : `Show all ${number(others.length + (isQuiet ? 0 : hidden))}`),
      this.isWhole && total > MOST_READ && h("p", { class: "quiet" }, `GET /v1/problems lists all ${number(total)}.`),
    );
  }
}

const sum = (counts) => Object.values(counts).reduce((total, each) => total + each, 0);

const tag = (severity, words) => h("span", { class: `tag ${LOOKS[severity]}` }, words);

/** A table's problems in a few words, for its row. */
export function brief(problems) {
  if (!problems.length) return null;
  return h("ul", { class: "plain" }, ...problems.map((each) => h("li", { "data-key": each.id }, tag(each.severity, each.title))));
}

function notice(problem, jobs, changed) {
  const { id, severity, about, since, title, detail, consequence, remedy } = problem;
  return h(
    "li",
    { class: `problem ${LOOKS[severity]}`, "data-key": id },
    h("span", { class: "line" }, tag(severity, severity), h("strong", {}, object(about), ": ", title), h("span", { class: "quiet" }, "since ", time(since))),
    h("p", {}, detail),
    h("p", {}, consequence),
    h("p", { class: "hint" }, remedy),
    command(problem.command, `${title}, ${about.name}`),
    problem.action && may("operator") && remedyOf(problem, jobs, changed),
  );
}

function object({ type, id, name }) {
  if (type === "table") return tableLink(id, name);
  if (type === "webhook") return link(`#/webhooks/${encodeURIComponent(id)}`, `Webhook ${name}`);
  if (type === "group") return link("#/workers", `Worker group ${name}`);
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
