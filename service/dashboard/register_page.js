// A form that registers a table. Before that, the user can see what the service detects at the path.

import { post } from "./api.js";
import { h } from "./dom.js";
import { listed, tableType } from "./format.js";
import { card, field, link, pairs, problem, tableLink } from "./components.js";
import { declaredIn, declaringPage, given, givenList, registerButtons, text } from "./declaration_fields.js";

export function registerPage(changed) {
  return declaringPage("Register a table", changed, {
    draw: (page) => [
      h("div", { class: "columns", "data-key": "columns" }, h("div", { class: "stack" }, form(page)), h("div", { class: "stack" }, page.failure && problem(page.failure), page.found && detected(page.found))),
    ],
    async call(data, isFinal) {
      if (!isFinal) return post("v1/tables/detect", wanted(data));
      const table = await post("v1/tables", wanted(data));
      location.hash = `#/tables/${encodeURIComponent(table.id)}`;
      return null;
    },
  });
}

function form({ send, fields, isSending }) {
  return card(
    "register",
    "The table",
    h(
      "form",
      { onsubmit: send },
      field("Path", text("base_path", { required: true, maxlength: 4096, placeholder: "s3a://lake/orders" }), "An absolute path or a URI. The service only reads there."),
      field("Name", text("name", { maxlength: 1024 }), "Empty: the name in hoodie.properties."),
      field("Number of buckets", h("input", { type: "number", name: "num_buckets", min: 1, max: 1_000_000, inputmode: "numeric" }), "For a bucket index: the number in the writers' options. Empty: detected from sampled keys."),
      field("Hash fields", text("hash_fields", {}), "Columns, separated by commas. Needed with the number of buckets."),
      ...fields(),
      registerButtons(isSending, "Reading …", "Register"),
      h("p", {}, link("#/discover", "Find all tables below a folder")),
      h("p", { class: "quiet" }, "Policies act on the table as soon as it is registered. Register it only when its writers take this lock."),
    ),
  );
}

/** The body of the call from the form's controls. */
function wanted(data) {
  const fields = givenList(data, "hash_fields", ",");
  return {
    base_path: given(data, "base_path"),
    ...(given(data, "name") && { name: given(data, "name") }),
    ...((given(data, "num_buckets") || fields.length > 0) && { index: { num_buckets: Number(given(data, "num_buckets")), hash_fields: fields } }),
    ...declaredIn(data),
  };
}

function detected({ name, base_path: path, index, profile, registered_as: known }) {
  const layout = profile.bucket_layout ?? {};
  return card(
    "detected",
    "Detected",
    known && problem({ title: "The table is registered already" }, "warn"),
    known && h("p", {}, tableLink(known, "Show it")),
    ...(profile.warnings ?? []).map((words) => problem({ title: words }, "warn")),
    pairs(
      ["Name", name],
      ["Path", h("code", {}, path)],
      ["Type", `${tableType(profile)}${profile.table_version == null ? "" : `, table version ${profile.table_version}`}`],
      ["Partitioned by", listed(profile.partition_fields) ?? "not partitioned"],
      ["Record key", listed(profile.record_key_fields)],
      ["Ordering", listed(profile.ordering_fields)],
      ["Bucket index", index ? `${index.num_buckets} buckets by ${index.hash_fields.join(", ")}` : (layout.kind ?? "none was detected for certain").replaceAll("_", " ")],
      ["Columns", listed((profile.columns ?? []).map((column) => column.name))],
    ),
  );
}
