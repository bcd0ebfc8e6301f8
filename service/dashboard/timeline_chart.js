// The timeline of a table as lanes, one for each action, with the pending instants and their ages.

import { get } from "./api.js";
import { asTable, box, drawing, scale, span, tracks } from "./chart.js";
import { h } from "./dom.js";
import { ago, bytes, count, moment, seconds, sentence } from "./format.js";
import { card, field, select } from "./components.js";
import { Zoom } from "./zoom.js";

const MOST = 500;
const HOUR_MS = 3_600_000;
const PERIODS = [
  ["", "all loaded instants"],
  ["1", "the last hour"],
  ["24", "the last day"],
  ["168", "the last week"],
];
// The least width of an instant in units of the drawing, which is 1000 units wide. A narrower instant could not be
// seen.
const LEAST = 3;
const ACTIONS = {
  COMPACT: "compaction",
  LOG_COMPACT: "log compaction",
  CLUSTER: "clustering",
  BUCKET_RESCALE: "bucket rescale",
};
const ORDER = ["deltacommit", "commit", "replacecommit", "compaction", "logcompaction", "clustering", "bucket rescale", "clean", "rollback", "savepoint", "restore"];
const HEADINGS = ["Action", "Instant", "State", "Completed", "Took", "Bytes"];

export class TimelineChart {
  constructor(tableId) {
    this.tableId = tableId;
    this.commits = null;
    this.pending = [];
    this.hours = "";
    this.zoom = new Zoom();
    this.isMore = false;
    this.asOf = null;
  }

  /** Loads the commits, if the snapshot has changed. `snapshot` is null before the first poll. */
  async load(snapshot) {
    if (!snapshot) return;
    if (!this.commits || this.asOf !== snapshot.taken_at) {
      const page = await get("v1/commits", { table_id: this.tableId, limit: MOST });
      this.commits = page.items;
      this.isMore = page.next_cursor !== null;
      this.asOf = snapshot.taken_at;
    }
    this.pending = snapshot.pending;
  }

  draw(changed) {
    if (!this.commits) return null;
    const now = Date.now();
    const done = this.commits.map(completed);
    const waiting = this.pending.map((each) => pending(each, now));
    const every = [...done, ...waiting];
    if (!every.length) return card("lanes", "Timeline", h("p", { class: "quiet" }, "No instants yet."));
    const whole = this.hours ? now - this.hours * HOUR_MS : Math.min(now - 60_000, ...every.map((each) => each.from));
    const [since, until] = this.zoom.within(whole, now);
    const shown = every.filter((each) => each.to >= since && each.from <= until);
    const actions = [...new Set(every.map((each) => each.action))].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
    const choose = (event) => {
      this.hours = event.target.value;
      this.zoom.leave();
      changed.redraw();
    };
    return card(
      "lanes",
      "Timeline",
      h("div", { class: "filters" }, field("Period", select({ onchange: choose }, PERIODS, this.hours)), this.zoom.draw(whole, now, changed.redraw)),
      this.zoom.around(tracks(actions.map((action) => lane(action, shown.filter((each) => each.action === action), since, until))), whole, now, changed.redraw),
      span(since, until),
      this.isMore && h("p", { class: "quiet" }, `The latest ${MOST} instants are shown. GET /v1/commits returns the earlier ones.`),
      asTable("Timeline", HEADINGS, [...waiting, ...done].filter((each) => shown.includes(each)).slice(0, 100).map(row)),
    );
  }
}

function completed(commit) {
  const { requested_time: requested, completion_time: end, completed_at: at, action, operation } = commit;
  const to = Date.parse(at);
  const took = end ? apart(requested, end) : null;
  const name = ACTIONS[operation] ?? action;
  return { key: `${requested} ${action}`, action: name, requested, operation, at, took, from: to - (took ?? 0), to, bytes: commit.bytes_written, isPending: false };
}

function pending(instant, now) {
  const { requested_time: requested, action, state, is_plan: isPlan, requested_at: since, age_seconds: age } = instant;
  const from = since ? Date.parse(since) : now;
  const beat = instant.heartbeat_age_seconds;
  return { key: `${requested} ${action}`, action, requested, state: isPlan ? "planned" : state, age, beat, from, to: now, isPending: true };
}

/** Returns the milliseconds between two instants of Hudi, which are local times of one zone. Returns null if an instant
 * is not a time. */
function apart(one, other) {
  const [from, to] = [one, other].map((text) => {
    const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})$/.exec(text);
    return parts && Date.UTC(parts[1], parts[2] - 1, ...parts.slice(3).map(Number));
  });
  return from == null || to == null || to < from ? null : to - from;
}

const place = (action) => (ORDER.includes(action) ? ORDER.indexOf(action) : ORDER.length);

function lane(action, instants, since, until) {
  const across = scale(since, until);
  const waiting = instants.filter((each) => each.isPending);
  const oldest = Math.max(...waiting.map((each) => each.age ?? -1));
  const words = [
    count(instants.length - waiting.length, "completed", "completed"),
    waiting.length > 0 && `${waiting.length} pending${oldest >= 0 ? `, ${seconds(oldest)}` : ""}`,
  ].filter(Boolean);
  const shapes = instants.map((each) => {
    const [from, to] = [across(each.from), across(each.to)];
    const width = Math.max(LEAST, to - from);
    return box(each.isPending ? "pending" : "done", Math.min(from, across(until) - width), width, instantText(each));
  });
  return {
    key: action,
    name: sentence(action),
    picture: drawing("lane", `${sentence(action)}: ${words.join(", ")}`, ...shapes),
    words: waiting.length ? h("span", { class: "tag warn" }, words[1]) : words[0],
  };
}

function instantText(each) {
  if (each.isPending) {
    const age = each.age == null ? "" : ` for ${seconds(each.age)}`;
    return `${each.requested} ${each.state}${age}${each.beat == null ? "" : `, last heartbeat ${seconds(each.beat)} ago`}`;
  }
  const took = each.took == null ? "" : `, took ${seconds(each.took / 1000)}`;
  return `${each.requested}${each.operation ? ` ${each.operation}` : ""}, completed ${moment(each.at)}${took}`;
}

function row(each) {
  return {
    key: each.key,
    cells: [
      sentence(each.action),
      h("code", {}, each.requested),
      each.isPending ? `${each.state}${each.age == null ? "" : ` for ${seconds(each.age)}`}` : "completed",
      each.isPending ? "–" : ago(each.at),
      each.took == null ? "–" : seconds(each.took / 1000),
      each.bytes == null ? "–" : bytes(each.bytes),
    ],
  };
}
