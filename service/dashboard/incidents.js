// The unresolved incidents of a table: instant, time, effect and remedy.

import { all, post, tablePath } from "./api.js";
import { command } from "./command.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { jobLink, time } from "./components.js";
import { may } from "./role.js";

const MOST_LISTED = 5;
const REPAIRED = ["stale-write", "old-number"];

export class Incidents {
  constructor(tableId) {
    this.tableId = tableId;
    this.every = [];
  }

  async load() {
    this.every = await all("v1/incidents?state=open&state=suspected", { table_id: this.tableId });
  }

  /** Draws a notice for each kind of incident, and for each kind of damage. `jobs` are the active jobs; the commands
   * come from `problems`. */
  draw(jobs, problems, changed) {
    const instants = this.every.filter((each) => REPAIRED.includes(each.kind)).map((each) => each.instant);
    return [...grouped(this.every)].map(([key, group]) => this.#notice(key, group, jobs, instants, problems, changed));
  }

  #notice(key, group, jobs, instants, problems, changed) {
    const [{ kind, title, hint }] = group;
    const isOpen = group.some((each) => each.state === "open");
    const problem = problems.find((each) => each.evidence.incident_kind === kind);
    return h(
      "section",
      { class: `problem ${isOpen ? "bad" : "warn"}`, "data-key": key, "aria-label": title },
      h("strong", {}, title),
      h("ul", { class: "plain" }, ...group.slice(0, MOST_LISTED).map(line)),
      group.length > MOST_LISTED && h("p", {}, `and ${count(group.length - MOST_LISTED, "more", "more")}`),
      h("p", { class: "hint" }, hint),
      problem && command(problem.command, title),
      REPAIRED.includes(kind) && may("operator") && this.#repair(jobs, instants, changed),
    );
  }

  #repair(jobs, instants, changed) {
    const repair = jobs.find((job) => job.kind === "repair" && !job.dry_run);
    if (repair) return h("p", {}, jobLink(repair, `A repair is ${repair.state}.`));
    return h("div", { class: "actions" }, h("button", { type: "button", class: "small", onclick: () => start(this.tableId, instants, changed) }, "Repair"));
  }
}

function grouped(incidents) {
  const groups = new Map();
  for (const each of incidents) {
    // Damages have one kind of incident, but different titles and hints.
    const key = `incidents ${each.kind} ${each.kind === "damage" ? each.title : ""}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return groups;
}

const line = ({ id, state, detail, opened_at: since }) => h("li", { "data-key": id }, state === "suspected" && [h("span", { class: "tag warn" }, "suspected"), " "], detail, " Found ", time(since), ".");

async function start(tableId, instants, changed) {
  const text = "The repair waits for a moment without a write in flight, takes the table's lock, and moves the rows to the right buckets.";
  if (!(await confirmed("Repair?", text, "Start the repair"))) return;
  const repair = { kind: "repair", params: { instants: instants.slice(0, 1000) } };
  await post(`${tablePath(tableId)}/jobs`, repair).then(() => changed(), changed);
}
