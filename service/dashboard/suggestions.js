// Tables that are not registered although their writers delegate table services.

import { h } from "./dom.js";
import { count } from "./format.js";

export class Suggestions {
  constructor() {
    this.items = [];
  }

  take(items) {
    this.items = items;
  }

  /** Draws one notice for each table. */
  draw() {
    return this.items.map(notice);
  }
}

function notice({ base_path: path, table_name: name, plans, hint }) {
  return h(
    "section",
    { class: "problem warn", "data-key": `suggestion ${path}`, "aria-label": `${path} is not registered` },
    h("strong", {}, name, " is not registered"),
    h("p", {}, h("span", { class: "path" }, path), ` Its writer delegates ${count(plans, "plan")}.`),
    h("p", { class: "hint" }, hint),
  );
}
