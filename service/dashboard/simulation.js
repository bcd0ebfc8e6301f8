// The simulated outcome of an edit of a policy with the commits of the last days, compared with the present policy.

import { post, problemOf } from "./api.js";
import { asTable, drawing, plot, rounded, scale, steps, ticks } from "./chart.js";
import { card, grid, problem, tableLink } from "./components.js";
import { h } from "./dom.js";
import { DAY_MS, bytes, count, kindName, moment, number, seconds } from "./format.js";

const DAYS = 14;
const PATIENCE_MS = 60_000;
const overhead = (value) => (value == null ? "–" : value.toFixed(2));
const SIDES = [
  ["now", "Present policy"],
  ["new", "New policy"],
  ["actual", "Really"],
];
const CURVES = [
  ["read_overhead", "Cost of a read, divided by the cost after a compaction", overhead, 1],
  ["log_bytes", "Logs that wait for a compaction", bytes, 0],
];
const SUMS = ["", "Jobs", "Work", "GB-hours", "Rewritten", "Read overhead", "Objectives kept", "Longest wait"];

export class Simulation {
  constructor(changed) {
    this.changed = changed;
    this.forget();
  }

  forget() {
    [this.found, this.failure, this.asked] = [null, null, null];
  }

  /** Requests a simulation. `wanted` is the body of the call. The answer is dropped if there was another request
   * meanwhile. */
  async ask(wanted) {
    this.forget();
    this.asked = wanted;
    const from = new Date(Date.now() - DAYS * DAY_MS).toISOString();
    let found = null;
    let failure = null;
    try {
      found = await post("v1/policies/simulate", { ...wanted, from }, PATIENCE_MS);
    } catch (error) {
      failure = problemOf(error);
    }
    if (this.asked !== wanted) return;
    [this.found, this.failure] = [found, failure];
    this.changed();
  }

  /** Shows a simulation that was loaded by another call. */
  show(found) {
    [this.found, this.failure, this.asked] = [found, null, found];
  }

  draw(title = `What the new policy would have done in the last ${DAYS} days`) {
    if (!this.asked) return null;
    return card("simulation", title, ...this.#content());
  }

  #content() {
    if (this.failure) return [problem(this.failure)];
    if (!this.found) return [h("p", { class: "quiet", role: "status" }, "The commits are being replayed.")];
    const { found } = this;
    if (!found.commits) return [h("p", { role: "status" }, found.text)];
    const kinds = [...new Set(SIDES.flatMap(([side]) => found[side].kinds.map((each) => each.kind)))];
    const jobsOf = (kind, side) => found[side].kinds.find((each) => each.kind === kind)?.jobs ?? 0;
    return [
      h("p", { role: "status" }, found.text),
      found.caution && h("p", { class: "quiet" }, `These figures may be wrong: ${found.caution}.`),
      h("div", { class: "scroll" }, grid("Both policies", SUMS, SIDES.map(([side, words]) => ({ key: side, cells: sums(words, found[side]) })))),
      h("div", { class: "charts", "data-key": "charts" }, ...CURVES.map((each) => curves(each, found))),
      asTable("Jobs by kind", ["Kind", ...SIDES.map(([, words]) => words)], kinds.map((kind) => ({ key: kind, cells: [kindName(kind), ...SIDES.map(([side]) => number(jobsOf(kind, side)))] }))),
      h("h3", {}, "Tables whose work changes the most"),
      grid("Tables whose work changes the most", ["Table", "Jobs", "Read overhead"], found.items.map(tableRow)),
      h("p", { class: "quiet" }, `${count(found.commits, "commit")} of ${count(found.tables, "table")}, known since ${moment(found.known_since)}. Damages, dead writers and expired partitions are not simulated.`),
    ];
  }
}

function sums(words, side) {
  const wait = side.longest_wait;
  return [words, number(side.jobs), seconds(side.seconds), side.gb_hours.toFixed(2), bytes(side.rewritten_bytes), overhead(side.read_overhead), side.kept == null ? "–" : `${(100 * side.kept).toFixed(1)} %`, wait == null ? "–" : seconds(wait)];
}

function tableRow(each) {
  const change = (before, after, shown) => [h("del", {}, shown(before)), " ", h("ins", {}, shown(after))];
  return { key: each.id, cells: [tableLink(each.id, each.name), change(each.jobs_now, each.jobs_new, number), change(each.read_overhead_now, each.read_overhead_new, overhead)] };
}

/** Returns a drawing with two lines: the new policy in front of the present one. */
function curves([name, title, shown, floor], found) {
  const [from, to] = [Date.parse(found.from), Date.parse(found.to)];
  const values = ["now", "new"].map((side) => found[side].points.map((each) => each[name]));
  const most = Math.max(...values.flat());
  const top = floor + (rounded(most - floor, shown === bytes ? 2 : 10) || 1);
  const across = scale(from, to);
  const [now, next] = ["now", "new"].map((side) => steps(found[side].points.map((each) => [across(Date.parse(each.at)), (each[name] - floor) / (top - floor)])));
  now[1].setAttribute("class", "line before");
  const peaks = values.map((each) => shown(Math.max(...each)));
  const words = `${title}: at most ${peaks[1]} with the new policy, ${peaks[0]} with the present one, from ${moment(from)} to ${moment(to)}`;
  return h(
    "figure",
    { class: "chart", "data-key": name },
    h("figcaption", {}, title, h("strong", {}, `${peaks[1]} instead of ${peaks[0]}`)),
    plot([top, (top + floor) / 2, floor].map(shown), from, to, drawing("curve", words, ...ticks(), now[1], ...next)),
  );
}
