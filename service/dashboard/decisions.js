// The decisions about a table: the last one about each kind of job, with its reason, and the earlier ones.

import { get, tablePath } from "./api.js";
import { h } from "./dom.js";
import { count, kindName, moment, sentence } from "./format.js";
import { jobLink, time } from "./components.js";

const VERDICTS = { run: "started", wait: "waits", suggest: "suggested", skip: "not now" };
const DUE = ["wait", "suggest"];
const PAGE = 20;

export class Decisions {
  constructor(tableId) {
    this.path = `${tablePath(tableId)}/decisions`;
    this.current = [];
    /** The opened histories by kind of job: their items, and the cursor for the next page. */
    this.histories = new Map();
  }

  async load() {
    this.current = (await get(this.path, { current: true })).items;
    await Promise.all([...this.histories.keys()].map((kind) => this.#first(kind)));
  }

  /** Draws a line for each kind of job that waits or is suggested. */
  drawNext() {
    const due = this.current.filter((each) => DUE.includes(each.verdict));
    return due.map((each) => h("p", { "data-key": `next ${each.kind}` }, "Next: ", h("strong", {}, kindName(each.kind)), " ", verdict(each), ` ${sentence(each.because)}.`, each.cost && ` The job would take ${each.cost.text}.`));
  }

  draw(changed) {
    if (!this.current.length) return h("p", { class: "quiet" }, "No decision has been made yet.");
    const off = this.current.filter(isOff);
    return [
      h("ul", { class: "decisions" }, ...this.current.filter((each) => !isOff(each)).map((each) => this.#decision(each, changed))),
      off.length > 0 && h("p", { class: "quiet", "data-key": "off" }, `Off: ${off.map((each) => kindName(each.kind)).join(", ")}.`),
    ];
  }

  /** Loads the first page of earlier decisions; entries that were loaded before stay. */
  async #first(kind) {
    const page = await get(this.path, { kind, limit: PAGE });
    const known = this.histories.get(kind);
    const begun = new Set(page.items.map((each) => each.first_at));
    const older = known?.items.filter((each) => !begun.has(each.first_at) && each.first_at < page.items.at(-1)?.first_at) ?? [];
    this.histories.set(kind, { items: [...page.items, ...older], cursor: older.length ? known.cursor : page.next_cursor });
  }

  async #more(kind) {
    const { items, cursor } = this.histories.get(kind);
    const page = await get(this.path, { kind, limit: PAGE, cursor });
    this.histories.set(kind, { items: [...items, ...page.items], cursor: page.next_cursor });
  }

  #decision(each, changed) {
    const kind = each.kind;
    const toggle = (event) => {
      if (!event.target.open) this.histories.delete(kind);
      else if (!this.histories.has(kind)) this.#first(kind).then(() => changed.redraw(), changed);
    };
    const more = () => this.#more(kind).then(() => changed.redraw(), changed);
    const history = this.histories.get(kind);
    return h(
      "li",
      { "data-key": kind },
      h("span", { class: "line" }, h("strong", {}, kindName(kind)), verdict(each), time(each.last_at)),
      h("p", {}, `${sentence(each.because)}.`),
      h(
        "details",
        { ontoggle: toggle, "data-key": "history" },
        h("summary", { "aria-label": `Earlier decisions about ${kindName(kind).toLowerCase()}` }, "Earlier decisions"),
        history && h("ul", { class: "plain earlier" }, ...history.items.map(earlier)),
        history?.cursor && h("button", { type: "button", class: "small", onclick: more }, "Load more"),
      ),
    );
  }
}

/** Whether the policy has switched the kind off and the decision has no warning. */
const isOff = ({ verdict: name, code, warning }) => name === "skip" && code === "off" && !warning;

function earlier(each) {
  const often = each.count > 1 ? `, ${count(each.count, "time")} until ${moment(each.last_at)}` : "";
  return h(
    "li",
    { "data-key": each.first_at },
    h("span", { class: "line" }, verdict(each), h("time", { datetime: each.first_at }, `${moment(each.first_at)}${often}`)),
    h("p", { class: "quiet" }, `${sentence(each.because)}.`),
  );
}

function verdict({ verdict: name, job_id: id }) {
  const words = h("span", { class: `badge decided-${name}` }, VERDICTS[name] ?? name);
  return id ? jobLink({ id }, words) : words;
}
