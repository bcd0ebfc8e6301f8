// Jobs, newest first, with filters and pages.

import { get } from "./api.js";
import { h } from "./dom.js";
import { between, seconds, STATES } from "./format.js";
import { KINDS } from "./kinds.js";
import { badge, card, field, grid, jobTitle, select, tableLink, time } from "./components.js";
import { summary } from "./result.js";

const PAGE = 20;
const FILTERS = ["table_id", "kind", "state"];

export class Recent {
  /** `fixed` is the part of the filter that users cannot change, such as the table. `query` is the rest of the filter,
   * if the address contains that rest. */
  constructor(fixed = {}, query = null) {
    this.fixed = fixed;
    this.isRouted = query !== null;
    this.choose(query ?? {});
  }

  choose(filter) {
    this.filter = Object.fromEntries(FILTERS.map((name) => [name, filter[name] ?? ""]));
    this.seen = new Map();
    this.cursor = undefined;
    this.isLoaded = false;
  }

  /** Loads the newest page. Older jobs that were loaded before stay. */
  async load() {
    const asked = this.filter;
    const page = await get("v1/jobs", { ...asked, ...this.fixed, limit: PAGE });
    if (asked !== this.filter) return;
    this.learn(page.items);
    if (!this.isLoaded) this.cursor = page.next_cursor;
    this.isLoaded = true;
  }

  async loadMore() {
    const asked = this.filter;
    const page = await get("v1/jobs", { ...asked, ...this.fixed, limit: PAGE, cursor: this.cursor });
    if (asked !== this.filter) return;
    this.learn(page.items);
    this.cursor = page.next_cursor;
  }

  /** Adds jobs that match the filter, and removes the others. */
  learn(jobs) {
    for (const job of jobs) {
      if (this.#fits(job)) this.seen.set(job.id, job);
      else this.seen.delete(job.id);
    }
  }

  #fits(job) {
    return Object.entries({ ...this.filter, ...this.fixed }).every(([name, value]) => !value || job[name] === value);
  }

  /** Draws the list. If `isOfMany`, there is a column and a filter for the table. */
  draw(isOfMany, changed) {
    const jobs = [...this.seen.values()].sort((a, b) => b.created_at.localeCompare(a.created_at) || b.id.localeCompare(a.id));
    const headings = ["Job", ...(isOfMany ? ["Table"] : []), "State", "When", "Took", "Outcome"];
    const more = () => this.loadMore().then(() => changed(), changed);
    return card(
      "recent",
      this.isRouted ? "All jobs" : "Recent jobs",
      this.#choices(isOfMany && jobs, changed),
      grid("Recent jobs", headings, jobs.map((job) => ({ key: job.id, cells: cells(job, isOfMany) })), this.isLoaded ? "No matching jobs." : "Loading …"),
      this.cursor && h("button", { type: "button", class: "more", onclick: more }, "Load more"),
    );
  }

  #choices(jobs, changed) {
    const chooser = (label, name, choices) =>
      field(label, select({ onchange: (event) => this.#pick(name, event.target.value, changed), name }, [["", "all"], ...choices], this.filter[name]));
    return h(
      "div",
      { class: "filters" },
      jobs && chooser("Table", "table_id", this.#tables(jobs)),
      chooser("Kind", "kind", Object.entries(KINDS)),
      chooser("State", "state", STATES.map((state) => [state, state])),
    );
  }

  /** Returns the tables of the shown jobs, and the chosen one. */
  #tables(jobs) {
    const { table_id: chosen } = this.filter;
    const names = new Map(jobs.map((job) => [job.table_id, job.table_name]));
    if (chosen && !names.has(chosen)) names.set(chosen, chosen);
    return [...names].sort(([, one], [, other]) => one.localeCompare(other));
  }

  #pick(name, value, changed) {
    const filter = { ...this.filter, [name]: value };
    if (this.isRouted) {
      changed.go(filter);
      return;
    }
    this.choose(filter);
    changed();
  }
}

function cells(job, isOfMany) {
  return [
    h("span", {}, ...jobTitle(job)),
    ...(isOfMany ? [tableLink(job.table_id, job.table_name)] : []),
    badge(job),
    time(job.finished_at ?? job.started_at ?? job.created_at),
    job.finished_at ? seconds(between(job.created_at, job.finished_at)) : "–",
    h("span", { class: "outcome" }, summary(job)),
  ];
}
