// The last job of each kind on each table. Dry runs do not count, because they changed nothing.

import { get } from "./api.js";
import { h } from "./dom.js";
import { kindName } from "./format.js";
import { KINDS } from "./kinds.js";
import { badge, jobLink, time } from "./components.js";

const AT_ONCE = 4;

export class Latest {
  constructor() {
    this.jobs = new Map();
    this.asked = new Set();
  }

  learn(jobs) {
    for (const job of jobs.filter((each) => !each.dry_run)) {
      const known = this.of(job.table_id, job.kind);
      if (!known || known.id === job.id || known.created_at < job.created_at) this.jobs.set(key(job.table_id, job.kind), job);
    }
  }

  of(tableId, kind) {
    return this.jobs.get(key(tableId, kind));
  }

  /** Loads the past jobs of every table once, a few tables at a time; later calls of `learn` keep them current. */
  async fill(tables) {
    const unknown = tables.filter((table) => !this.asked.has(table.id));
    for (let start = 0; start < unknown.length; start += AT_ONCE) {
      await Promise.all(unknown.slice(start, start + AT_ONCE).map((table) => this.#past(table.id)));
    }
  }

  async #past(tableId) {
    const page = await get("v1/jobs", { table_id: tableId, limit: 100 });
    this.learn(page.items);
    const missing = page.next_cursor ? Object.keys(KINDS).filter((kind) => !this.of(tableId, kind)) : [];
    const older = await Promise.all(missing.map((kind) => get("v1/jobs", { table_id: tableId, kind, limit: 100 })));
    this.learn(older.flatMap((each) => each.items));
    this.asked.add(tableId);
  }

  draw(tableId) {
    const known = Object.keys(KINDS).map((kind) => this.of(tableId, kind)).filter(Boolean);
    if (!known.length) return h("span", { class: "quiet" }, "none yet");
    return h("ul", { class: "latest" }, ...known.map(line));
  }
}

function line(job) {
  const when = time(job.finished_at ?? job.started_at ?? job.created_at);
  return h("li", { "data-key": job.kind }, jobLink(job, kindName(job.kind)), badge(job), when);
}

const key = (tableId, kind) => `${tableId} ${kind}`;
