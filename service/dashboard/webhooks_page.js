// All webhooks with their health, and a form for a new one.

import { all, attempt, post, webhookPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { card, field, grid, link, problem, time } from "./components.js";
import { given, givenList, text } from "./declaration_fields.js";
import { may } from "./role.js";

const HEADINGS = ["Webhook", "Events", "Health", "Waiting", "Given up", "Last success", ""];

export function webhooksPage(changed) {
  let hooks = null;
  let failure = null;
  let created = null;

  async function load() {
    hooks = await all("v1/webhooks");
  }

  function draw() {
    if (!hooks) return [];
    return [
      h("h1", { "data-key": "title" }, "Webhooks"),
      card(
        "webhooks",
        `Webhooks (${hooks.length})`,
        grid("Webhooks", HEADINGS, hooks.map((hook) => ({ key: hook.id, cells: cells(hook, changed) })), "There are no webhooks yet."),
      ),
      may("admin") && form(),
    ];
  }

  function create(event) {
    event.preventDefault();
    const form = event.target;
    const data = new FormData(form);
    const headers = givenList(data, "headers", "\n").map((line) => line.split(":")).map(([name, ...rest]) => [name.trim(), rest.join(":").trim()]);
    const types = givenList(data, "types", ",");
    const send = async () => {
      created = await post("v1/webhooks", {
        url: given(data, "url"),
        ...(types.length > 0 && { types }),
        tables: givenList(data, "tables", ","),
        headers: Object.fromEntries(headers),
        description: given(data, "description"),
      });
      failure = null;
      form.reset();
    };
    return attempt(send, changed, (found) => (failure = found));
  }

  function form() {
    return card(
      "create",
      "Create a webhook",
      created && secret(created),
      h(
        "form",
        { onsubmit: create, class: "narrow", "data-key": "form" },
        field("URL", text("url", { required: true, maxlength: 2048 }), "https, or a Kafka topic: kafka+ssl://broker-1:9093/topic"),
        field("Events", text("types", { placeholder: "*" }), "Types, separated by commas: commit.published, job.*. Empty: all."),
        field("Tables", text("tables", {}), "Ids, or patterns of names, separated by commas: orders*. Empty: all."),
        field("Description", text("description", { maxlength: 1000 })),
        field("Headers", h("textarea", { name: "headers", rows: 2, spellcheck: "false" }), "One per line: Authorization: Bearer … They are never shown again."),
        failure && problem(failure),
        h("div", { class: "actions" }, h("button", { class: "primary" }, "Create")),
      ),
    );
  }

  return { title: () => "Webhooks", load, draw, isBusy: () => false };
}

function secret({ id, secret: value }) {
  return h(
    "div",
    { class: "problem good", role: "status", "data-key": "secret" },
    h("strong", {}, "The webhook was created. Its messages are signed with this secret, which is shown only now:"),
    h("code", { class: "secret" }, value),
    link(`#/webhooks/${encodeURIComponent(id)}`, "Show the webhook"),
  );
}

function cells(hook, changed) {
  const name = hook.description || hook.id;
  return [
    h("div", {}, link(`#/webhooks/${encodeURIComponent(hook.id)}`, name), h("div", { class: "path" }, hook.url)),
    [hook.types.join(", "), hook.tables.length > 0 && h("div", { class: "quiet" }, `of ${hook.tables.join(", ")}`)],
    health(hook),
    number(hook.pending),
    hook.dead ? h("span", { class: "tag warn" }, number(hook.dead)) : "0",
    hook.last_success_at ? time(hook.last_success_at) : "never",
    h("div", { class: "line" }, ...actions(hook, changed)),
  ];
}

/** Returns the buttons of a webhook; none for callers who may not use them. */
export function actions(hook, changed) {
  if (!may("operator")) return [];
  const name = hook.description || hook.id;
  const path = webhookPath(hook.id);
  const act = (call) => post(`${path}/${call}`).then(() => changed(), changed);
  const disable = async () => {
    const text = "The webhook gets no more events. A later replay can send the missed ones.";
    if (await confirmed(`Disable ${name}?`, text, "Disable it")) await act("disable");
  };
  const button = (words, call) =>
    h("button", { type: "button", class: "small", "aria-label": `${words}: ${name}`, onclick: call, "data-key": words }, words);
  if (!hook.enabled) return [button("Enable", () => act("enable"))];
  return [button("Test", () => act("test")), hook.pending > 0 && button("Try now", () => act("enable")), button("Disable", disable)];
}

/** A state of a delivery has the colour of a similar state of a job. */
export const BADGES = { pending: "running", delivered: "succeeded", dead: "failed" };

export function health(hook) {
  if (!hook.enabled) return [h("span", { class: "badge failed" }, "disabled"), h("div", { class: "quiet" }, hook.disabled_because)];
  if (hook.failing_since) return [h("span", { class: "badge unknown" }, "failing"), " since ", time(hook.failing_since)];
  return h("span", { class: "badge succeeded" }, hook.last_success_at ? "working" : "new");
}
