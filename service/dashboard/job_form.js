// The form that starts a job. The form's fields follow from the schema of the kind's parameters.

import { post, problemOf, tablePath } from "./api.js";
import { h } from "./dom.js";
import { sentence } from "./format.js";
import { JOB_KINDS } from "./job_kinds.js";
import { KINDS } from "./kinds.js";
import { card, field, problem, select } from "./components.js";

// Rows cannot be sorted by columns of these types.
const UNSORTABLE = /^(list|large_list|map|struct|fixed_size_list)</;
// Few jobs need these parameters, so they are hidden at first.
const RARE = /_seconds$|^(plans|take_over|parallelism|accepted|partition_fields|partition_extractor)$/;
const PREFIXES = "One per line; region=eu/* means all partitions whose path begins with region=eu/.";

export function jobForm(changed) {
  // These choices select the fields. All other values stay in the form's controls.
  const chosen = { kind: "compaction", sortBy: [], dryRun: true };
  let isSending = false;
  let failure = null;

  const set = (name) => (event) => {
    chosen[name] = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    failure = null;
    changed.redraw();
  };

  function fields(table) {
    const { params, required } = JOB_KINDS[chosen.kind];
    const draw = ([name, schema]) => parameter(table, name, schema, required.includes(name));
    const entries = Object.entries(params).filter(([name, { type }]) => type !== "object" && isOf(table, name));
    const rare = entries.filter(([name]) => RARE.test(name)).map(draw);
    return [
      ...entries.filter(([name]) => !RARE.test(name)).flatMap(draw),
      ...(rare.length ? [h("details", { class: "wide", "data-key": "rare" }, h("summary", {}, "More parameters"), h("div", { class: "fields" }, ...rare))] : []),
    ];
  }

  function parameter(table, name, schema, isRequired) {
    const label = sentence(name);
    if (name === "sort_by") return sortBy(table, schema.description);
    if (schema.enum) {
      const choices = schema.enum.map((each) => [each, each]);
      return field(label, select({ name, required: isRequired }, schema.default === undefined ? [["", ""], ...choices] : choices, schema.default ?? ""), schema.description);
    }
    if (schema.type === "boolean") {
      const choices = [["true", "yes"], ["false", "no"]];
      return field(label, select({ name }, schema.default === undefined ? [["", ""], ...choices] : choices, String(schema.default ?? "")), schema.description);
    }
    if (schema.type === "array") {
      const about = schema.items.type === "choice" ? `${schema.description}. ${PREFIXES}` : `${schema.description}. One per line`;
      return field(label, h("textarea", { name, rows: 2, spellcheck: "false", required: isRequired }), about);
    }
    if (schema.type === "integer") {
      const { minimum: min, maximum: max } = schema;
      return field(label, h("input", { type: "number", name, value: schema.default, min, max, required: isRequired, inputmode: "numeric" }), schema.description);
    }
    return field(label, h("input", { name, value: schema.default, required: isRequired, spellcheck: "false", autocomplete: "off" }), schema.description);
  }

  function sortBy({ profile, index: itsIndex }, about) {
    // The order is required only with a bucket index. Without one, small files can be merged in any order.
    const isNeeded = Boolean(itsIndex);
    const names = (profile.columns ?? []).filter((column) => !UNSORTABLE.test(column.type)).map((column) => column.name);
    if (!names.length) {
      return [field("Sort by", h("input", { name: "sort_by", required: isNeeded, spellcheck: "false" }), `${about}. Separated by commas`)];
    }
    const pick = (index) => (event) => {
      chosen.sortBy = [...chosen.sortBy.slice(0, index), event.target.value, ...chosen.sortBy.slice(index + 1)].filter(Boolean);
      changed.redraw();
    };
    const isFull = chosen.sortBy.length === names.length;
    return [...chosen.sortBy, ...(isFull ? [] : [""])].map((name, index) => {
      const free = names.filter((each) => each === name || !chosen.sortBy.includes(each));
      const choices = [["", index ? "(no more)" : isNeeded ? "(choose a column)" : "(none: only merge small files)"], ...free.map((each) => [each, each])];
      const label = index ? `Then by (${index + 1})` : "Sort by";
      // The key contains the choice, because the others move up when one is removed.
      const properties = { name: "sort_by", required: isNeeded && index === 0, "data-key": `${index} ${name}`, onchange: pick(index) };
      return field(label, select(properties, choices, name));
    });
  }

  async function send(event, table) {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    failure = null;
    const form = new FormData(event.target);
    const body = {
      kind: chosen.kind,
      params: given(JOB_KINDS[chosen.kind].params, form),
      dry_run: chosen.dryRun && JOB_KINDS[chosen.kind].hasPlan,
      ...given({ timeout_seconds: { type: "integer" } }, form),
    };
    changed.redraw();
    try {
      const job = await post(`${tablePath(table.id)}/jobs`, body);
      location.hash = `#/jobs/${encodeURIComponent(job.id)}`;
    } catch (error) {
      failure = problemOf(error);
    } finally {
      isSending = false;
      changed.redraw();
    }
  }

  function draw(table) {
    const kinds = Object.entries(KINDS).filter(([kind]) => isKindOf(table, kind));
    if (!isKindOf(table, chosen.kind)) chosen.kind = kinds[0][0];
    const { summary, about, hasPlan } = JOB_KINDS[chosen.kind];
    const words = !hasPlan ? `Start the ${chosen.kind}` : chosen.dryRun ? "Start the dry run" : "Start the job";
    return card(
      "form",
      "Start a job",
      h(
        "form",
        { onsubmit: (event) => send(event, table) },
        field("Kind", select({ onchange: set("kind") }, kinds, chosen.kind)),
        h("p", { class: "quiet" }, `${summary} ${about}`),
        h(
          "div",
          { class: "fields", "data-key": `fields of ${chosen.kind}` },
          ...fields(table),
          field("Time limit of an attempt, seconds", h("input", { type: "number", name: "timeout_seconds", min: 1, inputmode: "numeric" }), "Empty: the limit of the policy or of the service."),
        ),
        hasPlan &&
          h(
            "label",
            { class: "check", "data-key": "dry run" },
            h("input", { type: "checkbox", checked: true, onchange: set("dryRun") }),
            " Dry run: show the plan, change nothing",
          ),
        failure && problem(failure),
        h("div", { class: "actions" }, h("button", { class: "primary", disabled: isSending }, isSending ? "Sending …" : words)),
      ),
    );
  }

  return { draw };
}

/** Returns whether a parameter can have an effect on this table. */
function isOf({ index, profile }, name) {
  if (name === "partitions") return (profile.partition_fields ?? []).length > 0;
  return name !== "expansion_factor" || Boolean(index);
}

/** Returns whether a kind of job can do something on this table; unknown properties exclude no kind. */
function isKindOf({ index, profile: { table_type: type, partition_fields: partitions } }, kind) {
  if (kind === "compaction") return type !== "COPY_ON_WRITE";
  const { needsBuckets, needsPartitions } = JOB_KINDS[kind];
  if (needsPartitions && partitions?.length === 0) return false;
  return !needsBuckets || Boolean(index);
}

/** Returns the parameters for which the form's controls have a value. */
function given(params, data) {
  const found = {};
  for (const [name, schema] of Object.entries(params)) {
    const texts = data.getAll(name).filter((each) => each.trim());
    if (!texts.length) continue;
    if (schema.type === "integer") found[name] = Number(texts[0]);
    else if (schema.type === "boolean") found[name] = texts[0] === "true";
    else if (schema.type !== "array") [found[name]] = texts;
    else found[name] = lines(texts, name === "sort_by" ? "," : "\n").map((each) => (schema.items.type === "choice" ? partition(each) : each));
  }
  // A layout has no effect without columns to sort by.
  if ("sort_by" in params && !found.sort_by) delete found.layout;
  return found;
}

const lines = (texts, separator) => texts.flatMap((text) => text.split(separator)).map((each) => each.trim()).filter(Boolean);
const partition = (line) => (line.endsWith("*") ? { prefix: line.slice(0, -1) } : line);
