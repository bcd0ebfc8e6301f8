// The problems, one line for each cause. A line opens to the problems of its tables, with the remedies.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count, number } from "./format.js";
import { card, prose, time } from "./components.js";
import { notice, sum, tag } from "./problems.js";

const SHOWN = 8;
const MOST_READ = 100;

export class ProblemGroups {
  constructor() {
    this.groups = null;
    this.counts = {};
    this.isCounted = false;
    this.isWhole = false;
    /** The problems of the opened groups, by key. */
    this.open = new Map();
  }

  /** Takes the groups from the answer of another call, and requests the problems of the opened ones. */
  async take({ groups, counts, as_of: asOf }) {
    this.groups = groups;
    this.isCounted = asOf !== null;
    this.counts = counts;
    await Promise.all(groups.filter((each) => this.open.has(keyOf(each))).map((each) => this.#load(each)));
  }

  async #load(group) {
    const { items } = await get("v1/problems", { kind: group.kinds, limit: MOST_READ });
    this.open.set(keyOf(group), items);
  }

  /** Draws the groups. `jobs` are the active jobs. */
  draw(jobs, changed) {
    if (!this.groups) return null;
    const total = sum(this.counts);
    if (!total) return card("problems", "Problems", h("p", { class: "quiet" }, this.isCounted ? "The service knows of no problem." : "The service is counting the problems …"));
    const shown = this.isWhole ? this.groups : this.groups.slice(0, SHOWN);
    const toggle = () => {
      this.isWhole = !this.isWhole;
      changed.redraw();
    };
    return card(
      "problems",
      `Problems (${number(total)})`,
      h("div", { class: "groups", "data-key": "groups" }, ...shown.map((each) => this.#group(each, jobs, changed))),
      this.groups.length > SHOWN && h("button", { type: "button", class: "small more", onclick: toggle }, this.isWhole ? "Show fewer" : `Show all ${this.groups.length} causes`),
    );
  }

  #group(group, jobs, changed) {
    const key = keyOf(group);
    const { severity, title, names, objects, problems, since, remedy } = group;
    const open = (event) => {
      if (!event.target.open) this.open.delete(key);
      else if (!this.open.has(key)) this.#load(group).then(() => changed.redraw(), changed);
    };
    const items = this.open.get(key);
    const more = objects - names.length;
    return h(
      "details",
      { class: "group", "data-key": key, ontoggle: open },
      h(
        "summary",
        {},
        tag(severity, severity),
        h("strong", {}, title),
        h("span", { class: "about" }, objects > 1 && h("b", {}, `${number(objects)}: `), names.join(", "), more > 0 && ` and ${number(more)} more`),
        h("span", { class: "quiet remedy" }, ...prose(remedy)),
        h("span", { class: "quiet since" }, time(since)),
      ),
      items && h("ul", { class: "plain" }, ...items.map((each) => notice(each, jobs, changed))),
      items && problems > items.length && h("p", { class: "quiet" }, `${count(problems - items.length, "more problem")}: GET /v1/problems lists all.`),
    );
  }
}

const keyOf = ({ kinds }) => kinds.join(" ");
