// The policy of a pattern: a form, and a preview of what an edit changes before it is saved.

import { get, getTagged, NEW, orNull, post, problemOf, send } from "./api.js";
import { h } from "./dom.js";
import { count, kindName, number } from "./format.js";
import { card, grid, link, problem, tableLink } from "./components.js";
import { PolicyForm } from "./policy_form.js";
import { nested, valueOf } from "./policy_level.js";
import { shown } from "./quantities.js";
import { may } from "./role.js";
import { settingsOf } from "./schemas.js";
import { Shadow } from "./shadow.js";
import { Simulation } from "./simulation.js";

const CHANGED_MEANWHILE = 412;
const HEADINGS = ["Table", "Setting", "Before", "After", "From"];

export function patternPage(pattern, changed) {
  const path = `v1/policies/${encodeURIComponent(pattern)}`;
  let policy = null;
  let tag = null;
  let decides = null;
  let isLoaded = false;
  let failure = null;
  let isConflict = false;
  let preview = null;
  let said = null;
  const form = new PolicyForm("this pattern", () => {
    [preview, failure, said] = [null, null, null];
    simulation.forget();
    changed.redraw();
  });
  const simulation = new Simulation(changed.redraw);
  const shadow = new Shadow(pattern, changed, (policy) => send("PUT", path, policy, tag));
  form.isOpenIfOwn = true;

  async function load() {
    decides = (await get("v1/policies")).items.find((each) => each.pattern === pattern) ?? null;
    // The edits are based on the state that was shown, which the tag identifies, so that state is kept.
    if (!form.edits.size) await fetchPolicy();
    await shadow.load();
  }

  async function fetchPolicy() {
    const schemas = settingsOf("PatternPolicyIn");
    // Somebody may have deleted the policy since the list was loaded.
    ({ document: policy, tag } = (decides && (await orNull(getTagged(path)))) || { document: null, tag: NEW });
    form.take(known(policy, schemas), schemas);
    isLoaded = true;
  }

  function draw() {
    if (!isLoaded) return [];
    return [
      h("h1", { "data-key": "title" }, link("#/policies", "Policy"), " of ", h("code", {}, pattern)),
      h("p", { class: "quiet", "data-key": "about" }, about()),
      failure && h("div", { "data-key": "failure" }, problem(failure), isConflict && h("div", { class: "actions again" }, h("button", { type: "button", onclick: renew }, "Show the present policy with my changes"))),
      said && h("p", { class: "problem good", role: "status", "data-key": "said" }, said),
      h("form", { onsubmit: ask, "data-key": "form" }, ...form.draw(), may("operator") && buttons()),
      preview && drawPreview(),
      preview && simulation.draw(),
      !preview && shadow.draw(),
    ];
  }

  function about() {
    if (!policy) return "The pattern has no policy yet. The values below are the defaults; each setting that you change becomes a setting of this pattern.";
    return decides?.tables ? `The policy gives a setting to ${count(decides.tables, "table")}: ${decides.table_names.join(", ")}${decides.tables > decides.table_names.length ? " and more" : ""}.` : "The policy has no effect: no table matches, or stronger patterns and the tables themselves have the same settings.";
  }

  function buttons() {
    const many = form.edits.size;
    return h(
      "div",
      { class: "actions line kept", "data-key": "actions" },
      h("button", { class: "primary", disabled: !many }, many ? `Preview ${many === 1 ? "the change" : `${many} changes`}` : "Nothing to preview"),
      many > 0 && h("button", { type: "button", onclick: discard }, "Discard"),
      policy && h("button", { type: "button", class: "danger", onclick: () => ask(null, true) }, "Delete this policy"),
    );
  }

  function discard() {
    form.forget();
    [preview, failure, isConflict] = [null, null, false];
    changed.redraw();
  }

  /** After a conflict: loads the policy that somebody else has saved, and keeps the edits. */
  async function renew() {
    await load().then(fetchPolicy).then(() => ([failure, isConflict, preview] = [null, false, null]), (error) => (failure = problemOf(error)));
    changed.redraw();
  }

  async function ask(event, isDeletion = false) {
    event?.preventDefault();
    [failure, isConflict, said] = [null, false, null];
    try {
      const wanted = isDeletion ? null : nested(form.entries());
      preview = { wanted, found: await post("v1/policy-preview", { pattern, policy: wanted }) };
      if (preview.found.tables) simulation.ask({ pattern, policy: wanted });
    } catch (error) {
      failure = problemOf(error);
    }
    changed.redraw();
    document.getElementById("preview-save")?.focus();
  }

  async function save() {
    try {
      if (preview.wanted) await send("PUT", path, preview.wanted, tag);
      else await send("DELETE", path, undefined, tag);
      said = preview.wanted ? "Saved. Decisions follow the new policy from now on." : "Deleted.";
      preview = null;
      form.forget();
      changed();
    } catch (error) {
      failure = problemOf(error);
      isConflict = error.status === CHANGED_MEANWHILE;
      if (isConflict) preview = null;
      changed.redraw();
    }
  }

  async function startShadow() {
    const { wanted } = preview;
    preview = null;
    form.forget();
    await shadow.start(wanted);
  }

  function drawPreview() {
    const { wanted, found } = preview;
    const rows = found.items.flatMap((table) =>
      table.settings.map((each) => ({
        key: `${table.id} ${each.setting}`,
        cells: [tableLink(table.id, table.name), each.setting, h("del", {}, shown(each.setting, each.before)), h("ins", {}, shown(each.setting, each.after)), each.source],
      })),
    );
    const starts = found.items.flatMap((table) => table.starts.map((job) => h("li", { "data-key": `${table.id} ${job.kind}` }, tableLink(table.id, table.name), `: ${kindName(job.kind)}, because of ${job.because}`)));
    const words = wanted ? "Save the policy" : "Delete the policy";
    return card(
      "preview",
      wanted ? "Effect of the edit" : "Effect of the deletion",
      h("p", { role: "status" }, found.tables ? `${count(found.tables, "table")} would have another policy.` : "No table would have another policy."),
      found.tables > found.items.length && h("p", { class: "quiet" }, `The first ${number(found.items.length)} are shown.`),
      rows.length > 0 && grid("Settings that change", HEADINGS, rows),
      h("h3", {}, "Jobs that would start now"),
      starts.length ? h("ul", {}, ...starts) : h("p", { class: "quiet" }, "Nothing."),
      h("div", { class: "actions" }, h("button", { type: "button", id: "preview-save", class: wanted ? "primary" : "danger", onclick: save }, words), wanted && h("button", { type: "button", onclick: startShadow }, "Try it as a shadow, without starting jobs")),
    );
  }

  return { title: () => `Policy of ${pattern}`, load, draw, isBusy: () => false };
}

/** Returns the settings of this level, and the defaults of all other settings. */
function known(policy, schemas) {
  const own = policy ? { ...policy.settings, precedence: policy.precedence || undefined } : {};
  return new Map(
    [...schemas].map(([name, schema]) => {
      const value = valueOf(own, name);
      const isOwn = value !== undefined;
      const usual = name === "precedence" ? 0 : (schema["x-default"] ?? null);
      // No other level has the precedence of a pattern.
      const other = name === "precedence" ? "default" : "weaker levels";
      return [name, { value: isOwn ? value : usual, source: isOwn ? "this pattern" : other, isOwn }];
    }),
  );
}
