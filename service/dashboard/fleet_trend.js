// The development of all tables and jobs together in a period: backlog, ends of jobs, use of slots, bytes freed.

import { get } from "./api.js";
import { asTable, box, drawing, plot, rounded, scale, steps, ticks, WIDTH } from "./chart.js";
import { card } from "./components.js";
import { h } from "./dom.js";
import { bytes, moment, number } from "./format.js";

const share = ({ running, slots }) => (slots ? Math.min(1, running / slots) : running ? 1 : 0);
const percent = (value) => `${Math.round(value * 100)} %`;
const HEADINGS = ["When", "Backlog", "Queued", "Slots in use", "Succeeded", "Failed", "Cancelled", "Freed"];
const OUTCOMES = [
  ["failed", "mark-bad"],
  ["cancelled", "mark-quiet"],
  ["succeeded", "mark-good"],
];

export class FleetTrend {
  constructor() {
    this.found = null;
  }

  async load(period) {
    this.found = await get("v1/report/trend", period);
  }

  draw() {
    if (!this.found) return null;
    const { items } = this.found;
    if (!items.length) return card("trend", "Trend of all tables", h("p", { class: "quiet" }, "No sample was taken in this period. The service takes one every five minutes."));
    const jobs = (each) => each.succeeded + each.failed + each.cancelled;
    return card(
      "trend",
      "Trend of all tables",
      h(
        "div",
        { class: "charts", "data-key": "charts" },
        this.#curve("Logs that wait for a compaction", (each) => each.log_bytes, bytes),
        this.#curve("Jobs that wait for a worker", (each) => each.queued, number),
        this.#bars("Ends of jobs", jobs, number, (each) => `${number(each.succeeded)} succeeded, ${number(each.failed)} failed, ${number(each.cancelled)} cancelled`, OUTCOMES),
        this.#curve("Slots in use", share, percent, 1),
        this.#bars("Bytes freed", (each) => each.freed_bytes, bytes, (each) => bytes(each.freed_bytes), [["freed_bytes", "mark-good"]]),
      ),
      asTable("Trend of all tables", HEADINGS, items.slice(-100).reverse().map(row)),
    );
  }

  get #ends() {
    return [Date.parse(this.found.since), Date.parse(this.found.until)];
  }

  #curve(title, valueOf, shown, end) {
    const { items } = this.found;
    const [from, to] = this.#ends;
    const most = Math.max(...items.map(valueOf));
    const top = end ?? (rounded(most, shown === bytes ? 2 : 10) || 1);
    const across = scale(from, to);
    const last = valueOf(items.at(-1));
    const words = `${title}: last ${shown(last)}, at most ${shown(most)}, from ${moment(from)} to ${moment(to)}`;
    const points = items.map((each) => [across(Date.parse(each.at)), valueOf(each) / top]);
    return figure(title, shown(last), plot(axis(top, shown), from, to, drawing("curve", words, ...ticks(), ...steps(points))));
  }

  #bars(title, valueOf, shown, wordsOf, parts) {
    const { items, step_seconds: step } = this.found;
    const [from, to] = this.#ends;
    const most = Math.max(...items.map(valueOf));
    const all = items.reduce((sum, each) => sum + valueOf(each), 0);
    const top = rounded(most, shown === bytes ? 2 : 10) || 1;
    const across = scale(from, to);
    const width = Math.max(2, (step * 1000 * WIDTH) / Math.max(1, to - from) - 1);
    const boxes = items.flatMap((each) => {
      let y = 100;
      return parts.map(([name, look]) => {
        const height = (each[name] / top) * 100;
        y -= height;
        return height > 0 && box(look, Math.min(across(Date.parse(each.at)), WIDTH - width), width, `${moment(each.at)}: ${wordsOf(each)}`, { y, height });
      });
    });
    const words = `${title}: ${shown(all)} in all, at most ${shown(most)} in a step, from ${moment(from)} to ${moment(to)}`;
    return figure(title, shown(all), plot(axis(top, shown), from, to, drawing("curve", words, ...ticks(), ...boxes)));
  }
}

const figure = (title, words, picture) => h("figure", { class: "chart", "data-key": title }, h("figcaption", {}, title, h("strong", {}, words)), picture);

/** Returns the labels of an axis. The middle of an axis from 0 to 1 has a label only if the axis shows percentages. */
const axis = (top, shown) => (shown !== percent && top < 2 ? [shown(top), "", shown(0)] : [top, top / 2, 0].map(shown));

function row(each) {
  return {
    key: each.at,
    cells: [moment(each.at), bytes(each.log_bytes), number(each.queued), `${each.running.toFixed(1)} of ${each.slots.toFixed(1)}`, number(each.succeeded), number(each.failed), number(each.cancelled), bytes(each.freed_bytes)],
  };
}
