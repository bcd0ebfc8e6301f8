// The shown part of an axis of time. Buttons, keys and the pointer move this part and zoom it.

import { h } from "./dom.js";

const NEARER = 0.5;
const STEP = 0.5;
const LEAST_MS = 1000;
const KEYS = { "+": "nearer", "=": "nearer", "-": "farther", ArrowLeft: "earlier", ArrowRight: "later", 0: "all" };

export class Zoom {
  constructor() {
    this.part = null;
  }

  leave() {
    this.part = null;
  }

  /** Returns the beginning and the end of the shown part. */
  within(from, to) {
    if (!this.part) return [from, to];
    const length = Math.min(this.part.length, to - from);
    const begin = Math.min(Math.max(this.part.begin, from), to - length);
    return [begin, begin + length];
  }

  /** Changes the shown part. The moment at the share `at` of its width stays in its place. */
  #change(how, from, to, at = 0.5) {
    const [begin, end] = this.within(from, to);
    const length = end - begin;
    if (how === "all") return this.leave();
    if (how === "earlier" || how === "later") {
      this.part = { begin: begin + length * (how === "later" ? STEP : -STEP), length };
      return undefined;
    }
    const wanted = Math.max(LEAST_MS, how === "nearer" ? length * NEARER : length / NEARER);
    this.part = wanted >= to - from ? null : { begin: begin + (length - wanted) * at, length: wanted };
    return undefined;
  }

  draw(from, to, redraw) {
    const act = (how) => () => {
      this.#change(how, from, to);
      redraw();
    };
    const [begin, end] = this.within(from, to);
    const button = (how, words, isOff) => h("button", { type: "button", class: "small", "data-key": how, disabled: isOff, onclick: act(how) }, words);
    return h(
      "div",
      { class: "actions", role: "group", "aria-label": "Zoom of the timeline", "data-key": "zoom" },
      button("nearer", "Zoom in", end - begin <= LEAST_MS),
      button("farther", "Zoom out", !this.part),
      button("earlier", "Earlier", begin <= from),
      button("later", "Later", end >= to),
      button("all", "All", !this.part),
    );
  }

  /** Makes a drawing react to keys and double clicks. */
  around(drawn, from, to, redraw) {
    const press = (event) => {
      const how = KEYS[event.key];
      if (!how || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.#change(how, from, to);
      redraw();
    };
    const point = (event) => {
      const lane = event.target.closest("svg");
      if (!lane) return;
      const { left, width } = lane.getBoundingClientRect();
      this.#change("nearer", from, to, (event.clientX - left) / width);
      redraw();
    };
    return h("div", { class: "zoomed", role: "group", "aria-label": "Timeline: + and - zoom, arrow keys move, 0 shows all", tabindex: "0", "data-key": "zoomed", onkeydown: press, ondblclick: point }, drawn);
  }
}
