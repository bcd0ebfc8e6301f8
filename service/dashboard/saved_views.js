// Saved views of the tables: the browser keeps a name for a filter and an order. The address contains the filter and
// the order themselves.

import { h } from "./dom.js";
import { link } from "./components.js";
import { address } from "./route.js";

const KEPT = "groundskeeper.views";
const DENSITY = "groundskeeper.density";
const MOST = 20;

/** Returns the value that the browser keeps, or `otherwise`, because a user can forbid a browser to keep values. */
function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // If the browser keeps nothing, the value lasts as long as the page.
  }
}

export class SavedViews {
  constructor() {
    this.views = kept(KEPT, {});
    this.density = kept(DENSITY, "dense");
    this.isNaming = false;
  }

  /** `chosen` is the query of the address that is shown. */
  draw(chosen, changed) {
    const here = address([], { ...chosen, cursor: "" });
    const isKnown = Object.values(this.views).includes(here);
    const set = (name, value) => {
      this.views = { ...this.views, [name]: value };
      if (!value) delete this.views[name];
      keep(KEPT, this.views);
      this.isNaming = false;
      changed.redraw();
    };
    const save = (event) => {
      event.preventDefault();
      const name = new FormData(event.target).get("view").trim();
      if (name && Object.keys(this.views).length < MOST) set(name, here);
    };
    const ask = () => {
      this.isNaming = true;
      changed.redraw();
      document.getElementById("view-name")?.focus();
    };
    return h(
      "div",
      { class: "views", "data-key": "views" },
      ...Object.entries(this.views).map(([name, where]) => {
        const shown = link(where, name);
        if (where === here) shown.setAttribute("aria-current", "true");
        return h("span", { class: "view", "data-key": `view ${name}` }, shown, h("button", { type: "button", class: "link", "aria-label": `Forget the view ${name}`, onclick: () => set(name) }, "×"));
      }),
      this.isNaming
        ? h("form", { class: "line", "data-key": "naming", onsubmit: save }, h("input", { id: "view-name", name: "view", "aria-label": "Name of the view", required: true, maxlength: 40, autocomplete: "off" }), h("button", { class: "small" }, "Save"))
        : !isKnown && here !== "#/" && h("button", { type: "button", class: "small", "data-key": "save", onclick: ask }, "Save this view"),
    );
  }

  /** Draws the button that switches between dense and wide rows. */
  drawDensity(changed) {
    const isDense = this.density === "dense";
    const toggle = () => {
      this.density = isDense ? "comfortable" : "dense";
      keep(DENSITY, this.density);
      changed.redraw();
    };
    return h("button", { type: "button", class: "small", "data-key": "density", "aria-pressed": String(!isDense), onclick: toggle }, "Comfortable rows");
  }
}
