// The unresolved incidents of tables: instant, time, effect and remedy.

import { all, post, tablePath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { jobLink, tableLink, time } from "./parts.js";
import { may } from "./role.js";

const MOST_LISTED = 5;
const REPAIRED = ["stale-write", "old-number"];

export class Incidents {
  /** Incidents of one table, or of all. */
  constructor(query = {}) {
    this.query = query;
    this.every = [];
  }

  async load() {
    this.every = await all("v1/incidents?state=open&state=suspected", this.query);
  }

  /** One notice for each table and kind, and for each kind of damage. `names` maps ids of tables, null on a table's own page; `jobs` are active. */
  draw(names, jobs, changed) {
    return [...grouped(this.every)].map(([key, group]) => notice(key, group, names, jobs, (table) => this.#of(table), changed));
  }

  #of(tableId) {
    return this.every.filter((each) => each.table_id === tableId && REPAIRED.includes(each.kind)).map((each) => each.instant);
  }
}

function grouped(incidents) {
  const groups = new Map();
  for (const each of incidents) {
    // Damages of one kind differ in title and hint.
    const key = `incidents ${each.table_id} ${each.kind} ${each.kind === "damage" ? each.title : ""}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return groups;
}

function notice(key, group, names, jobs, instantsOf, changed) {
  const [{ table_id: tableId, kind, title, hint }] = group;
  const isOpen = group.some((each) => each.state === "open");
  return h(
    "section",
    { class: `problem ${isOpen ? "bad" : "warn"}`, "data-key": key, "aria-label": title },
    h("strong", {}, names && [tableLink(tableId, names.get(tableId) ?? tableId), ": "], title),
    h("ul", { class: "plain" }, ...group.slice(0, MOST_LISTED).map(line)),
    group.length > MOST_LISTED && h("p", {}, `and ${count(group.length - MOST_LISTED, "more", "more")}`),
    h("p", { class: "hint" }, hint),
    REPAIRED.includes(kind) && may("operator") && action(tableId, names?.get(tableId), jobs, instantsOf(tableId), changed),
  );
}

function line({ id, state, detail, opened_at: since }) {
  return h("li", { "data-key": id }, state === "suspected" && [h("span", { class: "tag warn" }, "suspected"), " "], detail, " Found ", time(since), ".");
}

function action(tableId, name, jobs, instants, changed) {
  const repair = jobs.find((job) => job.table_id === tableId && job.kind === "repair" && !job.dry_run);
  if (repair) return h("p", {}, jobLink(repair, `A repair is ${repair.state}.`));
  const label = name ? `Repair ${name}` : "Repair";
  return h("div", { class: "actions" }, h("button", { type: "button", class: "small", onclick: () => start(tableId, label, instants, changed) }, label));
}

async function start(tableId, label, instants, changed) {
  const text = "The repair waits for a moment without a write in flight, takes the table's lock, and moves the rows to the right buckets.";
  if (!(await confirmed(`${label}?`, text, "Start the repair"))) return;
  try {
    await post(`${tablePath(tableId)}/jobs`, { kind: "repair", params: { instants: instants.slice(0, 1000) } });
    changed();
  } catch (error) {
    changed(error);
  }
}
