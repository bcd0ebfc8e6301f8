// The fields of a form that declare the writers and the lock of a table.

import { h } from "./dom.js";
import { field, select } from "./components.js";
import { ENGINES } from "./writer_options.js";

const WRITERS = [
  ["", "not declared"],
  ["running", "they run"],
  ["stopped", "none is running"],
];
const LOCKS = [
  ["filesystem", "lock file of the table"],
  ["zookeeper", "ZooKeeper"],
  ["other", "another Hudi lock provider"],
];

/** What the controls of a form show before anybody has chosen, for a table as the API has it. */
export function choicesOf({ lock, writers }) {
  const isNamed = LOCKS.some(([value]) => value === lock.provider);
  return { lock: isNamed ? lock.provider : "other", writers: writers.stopped ? "stopped" : writers.hudi_version ? "running" : "" };
}

/** `set` returns the handler of the control that it names. */
export function lockFields(chosen, set, lock = { provider: "", options: {} }) {
  const lines = Object.entries(lock.options).map(([name, value]) => `${name}=${value}`).join("\n");
  return [
    field("Lock that the writers take", select({ name: "lock", onchange: set("lock") }, LOCKS, chosen.lock)),
    chosen.lock === "other" && field("Class of the lock provider", text("provider", { required: true, value: lock.provider })),
    chosen.lock !== "filesystem" &&
      field("Options of the lock", h("textarea", { name: "lock_options", rows: 3, spellcheck: "false" }, lines), "One per line: hoodie.write.lock.zookeeper.url=zk:2181"),
  ];
}

export function writersFields(chosen, set, writers = { hudi_version: "", engines: [] }) {
  return [
    field("Writers", select({ name: "writers", onchange: set("writers") }, WRITERS, chosen.writers)),
    chosen.writers === "running" &&
      field("Hudi version of the writers", text("hudi_version", { required: true, placeholder: "1.2.0", pattern: "[0-9]+\\.[0-9]+\\.[0-9]+([.\\-].+)*", value: writers.hudi_version })),
    chosen.writers !== "stopped" &&
      h(
        "fieldset",
        { class: "plain", "data-key": "engines" },
        h("legend", {}, "Engines of the writers"),
        ...ENGINES.map(([value, words]) => h("label", { class: "check", "data-key": value }, h("input", { type: "checkbox", name: "engines", value, checked: (writers.engines ?? []).includes(value) }), ` ${words}`)),
      ),
  ];
}

export function text(name, more) {
  return h("input", { name, spellcheck: "false", autocomplete: "off", ...more });
}

export const given = (data, name) => (data.get(name) ?? "").trim();

export function lockIn(data) {
  const lines = given(data, "lock_options").split("\n").map((line) => line.split("=")).filter(([name]) => name.trim());
  const options = Object.fromEntries(lines.map(([name, ...rest]) => [name.trim(), rest.join("=").trim()]));
  return { provider: given(data, "lock") === "other" ? given(data, "provider") : given(data, "lock"), options };
}

/** Only what the form says. */
export function writersIn(data) {
  const engines = data.getAll("engines");
  return {
    ...(given(data, "hudi_version") && { hudi_version: given(data, "hudi_version") }),
    ...(given(data, "writers") === "stopped" && { stopped: true }),
    ...(engines.length > 0 && { engines }),
  };
}
