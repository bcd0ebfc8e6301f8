// The fields of a form that declare the writers and the lock of a table.

import { problemOf } from "./api.js";
import { h } from "./dom.js";
import { field, problem, select } from "./components.js";
import { may } from "./role.js";
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

/** Returns the initial choices of a form for a table in the form of the API. */
export function choicesOf({ lock, writers }) {
  const isNamed = LOCKS.some(([value]) => value === lock.provider);
  return { lock: isNamed ? lock.provider : "other", writers: writers.stopped ? "stopped" : writers.hudi_version ? "running" : "" };
}

/** A page with a form that declares new tables. `draw(page)` returns its nodes below the title. `call` gets the form's
 * data, and whether the button "register" was pressed. Its result is shown by the page as `page.found`. */
export function declaringPage(title, changed, { draw, call }) {
  const chosen = { lock: "filesystem", writers: "" };
  const set = (name) => (event) => {
    chosen[name] = event.target.value;
    changed.redraw();
  };
  const page = { found: null, failure: null, isSending: false, fields: () => [...lockFields(chosen, set), ...writersFields(chosen, set)] };

  page.send = async (event) => {
    event.preventDefault();
    if (page.isSending) return;
    const data = new FormData(event.target);
    Object.assign(page, { isSending: true, failure: null });
    changed.redraw();
    try {
      page.found = await call(data, event.submitter?.value === "register");
    } catch (error) {
      Object.assign(page, { failure: problemOf(error), found: null });
    } finally {
      page.isSending = false;
      changed.redraw();
    }
  };

  function drawn() {
    if (!may("admin")) return [h("h1", {}, title), problem({ title: "Only an admin may register tables" }, "note")];
    return [h("h1", { "data-key": "title" }, title), ...draw(page)].filter(Boolean);
  }

  return { title: () => title, load: async () => {}, draw: drawn, isBusy: () => false };
}

/** Returns the members of a call that declare the lock and the writers. */
export function declaredIn(data) {
  const writers = writersIn(data);
  return { lock: lockIn(data), ...(Object.keys(writers).length > 0 && { writers }) };
}

/** Returns the fields about the lock. `set(name)` returns the handler of the control with this name. */
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

export const text = (name, more) => h("input", { name, spellcheck: "false", autocomplete: "off", ...more });

/** Returns the buttons of a form: the first one shows what the service detects, the second one registers the table.
 * While a call runs, the first button has the words `busy`. */
export function registerButtons(isSending, busy, words) {
  return h(
    "div",
    { class: "actions", "data-key": "actions" },
    h("button", { value: "show", disabled: isSending }, isSending ? busy : "Detect only"),
    h("button", { class: "primary", value: "register", disabled: isSending }, words),
  );
}

export const given = (data, name) => (data.get(name) ?? "").trim();

/** Returns the values of a control between separators, without the empty ones. */
export const givenList = (data, name, separator) => given(data, name).split(separator).map((each) => each.trim()).filter(Boolean);

export function lockIn(data) {
  const lines = given(data, "lock_options").split("\n").map((line) => line.split("=")).filter(([name]) => name.trim());
  const options = Object.fromEntries(lines.map(([name, ...rest]) => [name.trim(), rest.join("=").trim()]));
  return { provider: given(data, "lock") === "other" ? given(data, "provider") : given(data, "lock"), options };
}

/** Returns only the members for which the form has a value. */
export function writersIn(data) {
  const engines = data.getAll("engines");
  return {
    ...(given(data, "hudi_version") && { hudi_version: given(data, "hudi_version") }),
    ...(given(data, "writers") === "stopped" && { stopped: true }),
    ...(engines.length > 0 && { engines }),
  };
}
