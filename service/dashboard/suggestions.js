// Tables that are not registered although their writers delegate table services.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";

const MOST_READ = 500;

export class Suggestions {
  constructor() {
    this.tables = new Map();
  }

  async load() {
    const { items } = await get("v1/delegated-plans", { state: "unregistered", limit: MOST_READ });
    this.tables = new Map();
    for (const plan of items) this.tables.set(plan.base_path, [...(this.tables.get(plan.base_path) ?? []), plan]);
  }

  /** One notice for each table. */
  draw() {
    return [...this.tables].map(([path, plans]) => notice(path, plans));
  }
}

function notice(path, plans) {
  return h(
    "section",
    { class: "problem warn", "data-key": `suggestion ${path}`, "aria-label": `${path} is not registered` },
    h("strong", {}, plans[0].table_name, " is not registered"),
    h("p", {}, h("span", { class: "path" }, path), ` Its writer delegates ${count(plans.length, "plan")}.`),
    h("p", { class: "hint" }, plans[0].hint),
  );
}
