// The development of the backlog and the files of a table.

import { get, orNull, tablePath } from "./api.js";
import { asTable, box, drawing, plot, rounded, scale, steps, ticks } from "./chart.js";
import { h } from "./dom.js";
import { DAY_MS, bytes, moment, number } from "./format.js";
import { card, field, select } from "./components.js";

const PERIODS = [
  ["1", "the last day"],
  ["7", "the last week"],
  ["30", "the last 30 days"],
  ["", "the whole history"],
];
const MOST = 1000;
const ratio = (value) => `${Math.round(value * 100)} %`;
const FIGURES = [
  ["log_bytes", "Logs that wait for a compaction", bytes],
  ["log_ratio", "Logs as a share of the base files", ratio],
  ["delta_commits", "Commits since the last compaction", number],
  ["file_groups", "File groups", number],
  ["small_files", "Small files", number],
  ["freed_bytes", "Old file versions", bytes],
];

export class Trend {
  constructor(tableId) {
    this.path = `${tablePath(tableId)}/history`;
    this.items = null;
    this.days = "7";
    this.asked = null;
    this.isUnknown = false;
  }

  /** Loads the history again only if the snapshot has changed, or the user has chosen another period. */
  async load(snapshot) {
    const asked = `${snapshot?.taken_at} ${this.days}`;
    if (!snapshot || this.isUnknown || this.asked === asked) return;
    const since = this.days && new Date(Date.now() - this.days * DAY_MS).toISOString();
    const page = await orNull(get(this.path, { since, limit: MOST }));
    // An earlier version of the service keeps no history.
    this.isUnknown = page === null;
    this.items = page?.items ?? this.items;
    this.asked = asked;
  }

  draw(changed) {
    if (!this.items) return null;
    const choose = (event) => {
      this.days = event.target.value;
      changed();
    };
    const now = Date.now();
    const from = this.items.length ? Date.parse(this.items[0].at) : now;
    const known = FIGURES.filter(([name]) => this.items.some((each) => each[name] > 0));
    return card(
      "trend",
      "Backlog over time",
      h("div", { class: "filters" }, field("Period", select({ onchange: choose }, PERIODS, this.days))),
      known.length
        ? h("div", { class: "charts", "data-key": "charts" }, ...known.map((figure) => chart(figure, this.items, from, now)))
        : h("p", { class: "quiet" }, this.items.length ? "There was no backlog in this time." : "Nothing was observed in this time."),
      known.length > 0 && asTable("Backlog over time", ["When", ...known.map(([, title]) => title)], rows(known, this.items)),
    );
  }
}

function chart([name, title, shown], items, from, to) {
  const values = items.filter((each) => each[name] != null);
  const most = Math.max(...values.map((each) => each[name]));
  const top = rounded(most, shown === bytes ? 2 : 10);
  const last = values.at(-1)?.[name];
  const across = scale(from, to);
  const points = values.map((each) => [across(Date.parse(each.at)), each[name] / top]);
  const words = `${title}: now ${shown(last)}, at most ${shown(most)}, from ${moment(from)} to ${moment(to)}`;
  return h(
    "figure",
    { class: "chart", "data-key": name },
    h("figcaption", {}, title, h("strong", {}, shown(last))),
    plot([top, top / 2, 0].map(shown), from, to, drawing("curve", words, ...ticks(), ...steps(points), ...compactions(items, from, across))),
  );
}

function compactions(items, from, across) {
  const ends = [...new Set(items.map((each) => each.compacted_at).filter(Boolean))].filter((at) => Date.parse(at) >= from);
  return ends.map((at) => box("mark", across(Date.parse(at)), 2, `Compacted ${moment(at)}`));
}

function rows(known, items) {
  return items
    .slice(-100)
    .reverse()
    .map((each) => ({
      key: each.at,
      cells: [moment(each.at), ...known.map(([name, , shown]) => (each[name] == null ? "–" : shown(each[name])))],
    }));
}
