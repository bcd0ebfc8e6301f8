// All settings of a table's policy: the effective value of each, its source, and a form to change it. The fields follow
// the service's own description of its API.

import { get, problemOf, tablePath } from "./api.js";
import { h } from "./dom.js";
import { kindName, sentence } from "./format.js";
import { grid, problem, tableLink } from "./components.js";
import { nested, update, valueOf } from "./policy_level.js";
import { may } from "./role.js";

const HEADINGS = ["Setting", "Value", "From"];
const GENERAL = "general";
const SOURCES = { default: "default", table: "this table" };

export function policyPage(id, changed) {
  const path = tablePath(id);
  let table = null;
  let effective = null;
  let schemas = null;
  let failure = null;
  let isSaved = false;
  // Changes that are not saved, by setting; RESET lets the value come from the level below.
  let edits = new Map();
  let revision = 0;
  let isDrawn = false;

  async function load() {
    [table, effective, schemas] = await Promise.all([get(path), get(`${path}/policy`), schemas ?? described()]);
  }

  function draw() {
    if (!effective) return [];
    const names = Object.keys(effective.sources);
    const sections = [...new Set(names.map(sectionOf))];
    const isFirst = !isDrawn;
    isDrawn = true;
    return [
      h("h1", { "data-key": "title" }, "Policy of ", tableLink(id, table.name)),
      h(
        "p",
        { class: "quiet narrow", "data-key": "about" },
        "A setting comes from this table, from a policy of a pattern of names, or from the service's defaults, in this order.",
      ),
      h(
        "form",
        { onsubmit: save, "data-key": "form" },
        ...sections.map((section) => draft(section, names.filter((name) => sectionOf(name) === section), isFirst)),
        failure && problem(failure),
        isSaved && h("p", { class: "problem good", role: "status" }, "Saved. Decisions follow the new policy from now on."),
        may("operator") &&
          h(
            "div",
            { class: "actions", "data-key": "save" },
            h("button", { class: "primary", disabled: !edits.size }, edits.size ? `Save ${edits.size === 1 ? "the change" : `${edits.size} changes`}` : "Nothing to save"),
            edits.size > 0 && h("button", { type: "button", onclick: () => forget() }, "Discard"),
          ),
      ),
    ];
  }

  /** The first one is open at first; the reader may close it. */
  function draft(section, names, isFirst) {
    const own = names.filter((name) => effective.sources[name] === "table" || edits.has(name)).length;
    const title = section === GENERAL ? "General" : kindName(section);
    return h(
      "details",
      { class: "card settings", "data-key": section, open: isFirst && section === GENERAL },
      h("summary", {}, h("strong", {}, title), " ", state(section), own > 0 && [" ", h("span", { class: "tag note" }, `${own} of this table`)]),
      grid(title, HEADINGS, names.map((name) => ({ key: name, cells: cells(name) }))),
    );
  }

  function state(section) {
    const { enabled, mode } = effective.policy[section] ?? {};
    const word = enabled === undefined ? mode : enabled ? "on" : "off";
    return word && h("span", { class: "quiet" }, word);
  }

  function cells(name) {
    const description = schemas.get(name) ?? {};
    const source = edits.has(name) ? (edits.get(name) === RESET ? "the level below, when saved" : "this table, when saved") : SOURCES[effective.sources[name]] ?? effective.sources[name];
    const canReset = may("operator") && (edits.has(name) ? edits.get(name) !== RESET : effective.sources[name] === "table");
    const label = sentence(name.split(".").at(-1));
    return [
      [label, description.description && h("div", { class: "quiet" }, h("small", {}, `${description.description}.`))],
      may("operator") ? control(name, description, label) : h("code", {}, JSON.stringify(valueOf(effective.policy, name))),
      [
        h("span", { class: edits.has(name) || effective.sources[name] === "table" ? "tag note" : "quiet" }, source),
        canReset && [" ", h("button", { type: "button", class: "small", "aria-label": `Reset ${name}`, onclick: () => edit(name, RESET) }, "Reset")],
      ],
    ];
  }

  function control(name, description, label) {
    const value = edits.has(name) && edits.get(name) !== RESET ? edits.get(name) : valueOf(effective.policy, name);
    const type = typeOf(description, value);
    const accept = (event) => {
      const [read, wrong] = type.read(event.target.value);
      event.target.setCustomValidity(wrong ?? "");
      if (wrong) event.target.reportValidity();
      else edit(name, read);
    };
    // A new key draws the control anew: what was typed into the old one is gone.
    const properties = { "aria-label": `${label} (${name})`, onchange: accept, "data-key": `${name} ${revision}` };
    return type.draw(properties, value);
  }

  function edit(name, value) {
    isSaved = false;
    failure = null;
    edits.set(name, value);
    if (value === RESET) {
      if (effective.sources[name] !== "table") edits.delete(name);
      revision += 1;
    } else if (effective.sources[name] === "table" && JSON.stringify(value) === JSON.stringify(valueOf(effective.policy, name))) {
      edits.delete(name);
    }
    changed.redraw();
  }

  function forget() {
    edits = new Map();
    revision += 1;
    failure = null;
    changed.redraw();
  }

  async function save(event) {
    event.preventDefault();
    try {
      // Others may have changed it since: only the edited settings are replaced.
      effective = await update(path, ({ policy, sources }) => {
        const own = Object.keys(sources).filter((name) => sources[name] === "table" && !edits.has(name));
        const set = [...edits].filter(([, value]) => value !== RESET);
        return nested([...own.map((name) => [name, valueOf(policy, name)]), ...set]);
      });
      forget();
      isSaved = true;
    } catch (error) {
      failure = problemOf(error);
    }
    changed.redraw();
  }

  return { title: () => (table ? `Policy of ${table.name}` : "Policy"), load, draw, isBusy: () => false };
}

const RESET = Symbol("reset");
const sectionOf = (name) => (name.includes(".") ? name.split(".")[0] : GENERAL);

/** The schema of each setting, by its name. */
async function described() {
  const { components } = await get("openapi.json");
  const whole = (schema) => (schema?.$ref ? { ...components.schemas[schema.$ref.split("/").at(-1)], ...schema } : schema);
  const found = new Map();
  for (const [name, schema] of Object.entries(components.schemas.PolicyIn.properties)) {
    const { properties } = whole(schema);
    if (!properties) found.set(name, simple(whole(schema), whole));
    else for (const [member, its] of Object.entries(properties)) found.set(`${name}.${member}`, simple(whole(its), whole));
  }
  return found;
}

/** Without the alternative of null, which `isOptional` replaces. */
function simple(schema, whole) {
  const others = schema.anyOf?.filter((each) => each.type !== "null");
  if (others?.length !== 1) return schema;
  return { ...whole(others[0]), description: schema.description, isOptional: true };
}

function typeOf(schema, value) {
  if (schema.enum) return chosen(schema.enum.map((each) => [each, each]), schema, (text) => text);
  if (schema.type === "boolean") return chosen([["true", "yes"], ["false", "no"]], schema, (text) => text === "true");
  if (schema.type === "integer" || schema.type === "number") return numeric(schema);
  if (schema.type === "string") return text(schema);
  const isWords = Array.isArray(value) && value.every((each) => typeof each === "string") && schema.items?.type === "string";
  return isWords ? words() : json();
}

function chosen(choices, { isOptional }, read) {
  const all = isOptional ? [["", "none"], ...choices] : choices;
  return {
    draw: (properties, value) => h("select", properties, ...all.map(([each, name]) => h("option", { value: each, selected: String(value ?? "") === each }, name))),
    read: (entered) => [entered === "" ? null : read(entered)],
  };
}

function numeric({ type, minimum, exclusiveMinimum, maximum, isOptional }) {
  const limits = { min: minimum ?? exclusiveMinimum, max: maximum, step: type === "integer" ? 1 : "any", required: !isOptional };
  return {
    draw: (properties, value) => h("input", { ...properties, ...limits, type: "number", value: value ?? "", placeholder: isOptional ? "none" : null }),
    read: (entered) => {
      if (entered === "") return isOptional ? [null] : [null, "A number is needed."];
      return Number.isFinite(Number(entered)) ? [Number(entered)] : [null, "This is no number."];
    },
  };
}

function text({ isOptional, maxLength }) {
  return {
    draw: (properties, value) => h("input", { ...properties, value: value ?? "", maxlength: maxLength, placeholder: isOptional ? "none" : null, spellcheck: "false", autocomplete: "off" }),
    read: (entered) => [entered.trim() === "" && isOptional ? null : entered.trim()],
  };
}

function words() {
  return {
    draw: (properties, value) => h("input", { ...properties, value: value.join(", "), placeholder: "names, separated by commas", spellcheck: "false", autocomplete: "off" }),
    read: (entered) => [entered.split(",").map((each) => each.trim()).filter(Boolean)],
  };
}

function json() {
  return {
    draw: (properties, value) => h("textarea", { ...properties, rows: 2, spellcheck: "false" }, JSON.stringify(value)),
    read: (entered) => {
      try {
        return [JSON.parse(entered)];
      } catch {
        return [null, "This is no JSON."];
      }
    },
  };
}
