// All webhooks: their health, pending deliveries, and the last ones.

import { all, deliveryPath, get, post, webhookPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { moment, number, seconds } from "./format.js";
import { card, field, grid, pairs, select, time } from "./parts.js";

const PAGE = 50;
const STATES = ["pending", "delivered", "dead"];
const LIST_HEADINGS = ["Webhook", "Events", "Health", "Waiting", "Given up", "Last success", ""];
const DELIVERY_HEADINGS = ["Event", "State", "When", "Attempts", "Last answer", ""];

export function webhooksPage(changed) {
  let hooks = null;
  let chosen = null;
  let state = "";
  let deliveries = [];

  async function load() {
    hooks = await all("v1/webhooks");
    if (!hooks.some((hook) => hook.id === chosen)) chosen = hooks[0]?.id ?? null;
    const page = chosen && (await get(`${webhookPath(chosen)}/deliveries`, { limit: PAGE, state }));
    deliveries = page ? page.items : [];
  }

  function act(path) {
    return post(path).then(() => changed(), changed);
  }

  function draw() {
    if (!hooks) return [];
    return [
      h("h1", { "data-key": "title" }, "Webhooks"),
      card(
        "webhooks",
        `Webhooks (${hooks.length})`,
        hooks.length
          ? grid("Webhooks", LIST_HEADINGS, hooks.map((hook) => ({ key: hook.id, cells: cells(hook) })))
          : h("p", { class: "quiet" }, "There are no webhooks yet. ", h("code", {}, "POST /v1/webhooks"), " creates one."),
      ),
      chosen && drawDeliveries(),
    ];
  }

  function cells(hook) {
    const show = () => {
      chosen = hook.id;
      changed();
    };
    const name = hook.description || hook.id;
    return [
      h(
        "div",
        {},
        h("button", { type: "button", class: "link", onclick: show, "aria-pressed": String(hook.id === chosen) }, name),
        h("div", { class: "path" }, hook.url),
      ),
      [hook.types.join(", "), hook.tables.length > 0 && h("div", { class: "quiet" }, `of ${hook.tables.join(", ")}`)],
      health(hook),
      number(hook.pending),
      hook.dead ? h("span", { class: "tag warn" }, number(hook.dead)) : "0",
      hook.last_success_at ? time(hook.last_success_at) : "never",
      h("div", { class: "line" }, ...actions(hook, name)),
    ];
  }

  function actions(hook, name) {
    const button = (words, call) =>
      h("button", { type: "button", class: "small", "aria-label": `${words}: ${name}`, onclick: call, "data-key": words }, words);
    const path = webhookPath(hook.id);
    if (!hook.enabled) return [button("Enable", () => act(`${path}/enable`))];
    return [
      button("Test", () => act(`${path}/test`)),
      hook.pending > 0 && button("Try now", () => act(`${path}/enable`)),
      button("Disable", () => disable(path, name)),
    ];
  }

  async function disable(path, name) {
    const text = "It gets no more events. A later replay can send the missed ones.";
    if (await confirmed(`Disable ${name}?`, text, "Disable it")) await act(`${path}/disable`);
  }

  function drawDeliveries() {
    const hook = hooks.find((each) => each.id === chosen);
    const pick = (event) => {
      state = event.target.value;
      changed();
    };
    const choices = [["", "all"], ...STATES.map((each) => [each, each])];
    return card(
      "deliveries",
      `Deliveries to ${hook.description || hook.id}`,
      h("div", { class: "filters" }, field("State", select({ onchange: pick }, choices, state))),
      deliveries.length
        ? grid("Deliveries", DELIVERY_HEADINGS, deliveries.map((each) => ({ key: each.id, cells: line(each, hook) })))
        : h("p", { class: "quiet" }, "No matching deliveries."),
    );
  }

  function line(delivery, hook) {
    const last = delivery.attempts.at(-1);
    const again = () => act(`${deliveryPath(delivery.id)}/replay`);
    return [
      [delivery.event_type, h("div", { class: "path" }, delivery.event_id)],
      h("span", { class: `badge ${BADGES[delivery.state]}` }, delivery.state),
      time(delivery.ended_at ?? delivery.created_at),
      number(delivery.attempts.length),
      last ? answer(last) : "–",
      hook.enabled &&
        h("button", { type: "button", class: "small", "aria-label": `Replay ${delivery.event_id}`, onclick: again }, "Replay"),
    ];
  }

  return { title: () => "Webhooks", load, draw, isBusy: () => deliveries.some((each) => each.state === "pending") };
}

/** Delivery states share the colours of job states. */
const BADGES = { pending: "running", delivered: "succeeded", dead: "failed" };

function health(hook) {
  if (!hook.enabled) return [h("span", { class: "badge failed" }, "disabled"), h("div", { class: "quiet" }, hook.disabled_because)];
  if (hook.failing_since) return [h("span", { class: "badge unknown" }, "failing"), " since ", time(hook.failing_since)];
  return h("span", { class: "badge succeeded" }, hook.last_success_at ? "well" : "new");
}

function answer(attempt) {
  const words = attempt.status === null ? attempt.error ?? "acknowledged" : `HTTP ${attempt.status}`;
  return h(
    "details",
    {},
    h("summary", {}, words),
    pairs(
      ["Took", seconds(attempt.milliseconds / 1000)],
      ["Tried", time(attempt.at)],
      ["Next try", attempt.retry_at && moment(attempt.retry_at)],
      ["Answer", attempt.response && h("code", {}, attempt.response)],
    ),
  );
}
