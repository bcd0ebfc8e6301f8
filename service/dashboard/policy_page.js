// All settings of a table's policy: the effective value of each, its source, and a form to change it.

import { get, problemOf, tablePath } from "./api.js";
import { h } from "./dom.js";
import { problem, tableLink } from "./components.js";
import { PolicyForm } from "./policy_form.js";
import { nested, update, valueOf } from "./policy_level.js";
import { may } from "./role.js";
import { settingsOf } from "./schemas.js";
import { Simulation } from "./simulation.js";

const SOURCES = { default: "default", table: "this table" };

export function policyPage(id, changed) {
  const path = tablePath(id);
  let table = null;
  let failure = null;
  let isSaved = false;
  const form = new PolicyForm("this table", () => {
    [isSaved, failure] = [false, null];
    simulation.forget();
    changed.redraw();
  });
  const simulation = new Simulation(changed.redraw);

  async function load() {
    const [found, effective] = await Promise.all([get(path), get(`${path}/policy`)]);
    table = found;
    form.take(known(effective), settingsOf("PolicyIn"));
  }

  function draw() {
    if (!table) return [];
    const many = form.edits.size;
    return [
      h("h1", { "data-key": "title" }, "Policy of ", tableLink(id, table.name)),
      h(
        "p",
        { class: "quiet narrow", "data-key": "about" },
        "A setting comes from this table, from a ",
        h("a", { href: "#/policies" }, "policy of a pattern"),
        " of names, or from the service's defaults, in this order.",
      ),
      h(
        "form",
        { onsubmit: save, "data-key": "form" },
        ...form.draw(),
        failure && problem(failure),
        isSaved && h("p", { class: "problem good", role: "status" }, "Saved. Decisions follow the new policy from now on."),
        may("operator") &&
          h(
            "div",
            { class: "actions line kept", "data-key": "save" },
            h("button", { class: "primary", disabled: !many }, many ? `Save ${many === 1 ? "the change" : `${many} changes`}` : "Nothing to save"),
            many > 0 && h("button", { type: "button", onclick: simulate }, "Try it on the past"),
            many > 0 && h("button", { type: "button", onclick: discard }, "Discard"),
          ),
      ),
      simulation.draw(),
    ];
  }

  function simulate() {
    simulation.ask({ tables: [id], policy: nested(form.entries()) });
    changed.redraw();
  }

  function discard() {
    form.forget();
    simulation.forget();
    failure = null;
    changed.redraw();
  }

  async function save(event) {
    event.preventDefault();
    try {
      // Somebody else may have changed the policy meanwhile, so only the edited settings are replaced.
      const effective = await update(path, (latest) => {
        form.known = known(latest);
        return nested(form.entries());
      });
      form.known = known(effective);
      form.forget();
      simulation.forget();
      isSaved = true;
    } catch (error) {
      failure = problemOf(error);
    }
    changed.redraw();
  }

  return { title: () => (table ? `Policy of ${table.name}` : "Policy"), load, draw, isBusy: () => false };
}

function known({ policy, sources }) {
  return new Map(Object.entries(sources).map(([name, source]) => [name, { value: valueOf(policy, name), source: SOURCES[source] ?? source, isOwn: source === "table" }]));
}
