// One webhook. A delivery that blocks others comes first, with the reason.

import { all, deliveryPath, get, post, send, webhookPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count, moment, number, seconds } from "./format.js";
import { card, field, grid, pairs, select, tableLink, time } from "./components.js";
import { may } from "./role.js";
import { actions, BADGES, health } from "./webhooks_page.js";

const PAGE = 50;
const SOON_MS = 10_000;
const STATES = ["pending", "delivered", "dead"];
const HEADINGS = ["Event", "State", "When", "Attempts", "Last answer", ""];

export function webhookPage(id, changed) {
  let hook = null;
  let state = "";
  let deliveries = [];
  let names = null;

  async function load() {
    const [found, page] = await Promise.all([get(webhookPath(id)), get(`${webhookPath(id)}/deliveries`, { limit: PAGE, state })]);
    hook = found;
    deliveries = page.items;
    if (hook.blocked.length) names ??= new Map((await all("v1/tables")).map((table) => [table.id, table.name]));
  }

  function act(path) {
    return post(path).then(() => changed(), changed);
  }

  function draw() {
    if (!hook) return [];
    const name = hook.description || hook.id;
    return [
      h("h1", { "data-key": "title" }, "Webhook ", name, " ", h("span", { class: "path" }, hook.url)),
      ...hook.blocked.map((each) => blocked(each)),
      card(
        "webhook",
        "The webhook",
        pairs(
          ["Health", health(hook)],
          ["Events", hook.types.join(", ")],
          ["Tables", hook.tables.length ? hook.tables.join(", ") : "all"],
          ["Headers", Object.keys(hook.headers).length > 0 && Object.keys(hook.headers).join(", ")],
          ["Waiting", number(hook.pending)],
          ["Given up", number(hook.dead)],
          ["Last success", hook.last_success_at ? time(hook.last_success_at) : "never"],
          ["Created", moment(hook.created_at)],
          ["Id", h("code", {}, hook.id)],
        ),
        h("div", { class: "actions line" }, ...actions(hook, changed), may("admin") && h("button", { type: "button", class: "small danger", onclick: remove }, "Delete")),
      ),
      drawDeliveries(),
    ];
  }

  /** Shows the delivery that blocks others. */
  function blocked({ delivery, waiting_behind: behind }) {
    const last = delivery.attempts.at(-1);
    const skip = async () => {
      const text = "The receiver does not get this event, unless it is replayed. The deliveries behind it are sent at once.";
      if (await confirmed("Give this event up?", text, "Give it up")) await act(`${deliveryPath(delivery.id)}/skip`);
    };
    return h(
      "section",
      { class: "problem bad", "data-key": `blocked ${delivery.id}`, "aria-label": `Blocked by ${delivery.event_type}` },
      h("strong", {}, behind ? `${count(behind, "event waits", "events wait")} behind this one` : "The receiver does not accept this event"),
      h(
        "p",
        {},
        h("strong", {}, delivery.event_type),
        delivery.table_id && [" of ", tableLink(delivery.table_id, names.get(delivery.table_id) ?? delivery.table_id)],
        ", from ",
        time(delivery.created_at),
        `: ${count(delivery.attempts.length, "attempt")}`,
        last && [", the last ", time(last.at), `: ${reason(last)}`],
        ".",
      ),
      last?.response && h("pre", {}, last.response),
      last?.retry_at && hook.enabled && h("p", {}, `The next attempt is on ${moment(last.retry_at)}.`),
      may("operator") &&
        h(
          "div",
          { class: "actions" },
          hook.enabled && h("button", { type: "button", class: "small", onclick: () => act(`${webhookPath(id)}/enable`) }, "Try now"),
          h("button", { type: "button", class: "small", onclick: skip }, "Give this event up"),
        ),
    );
  }

  async function remove() {
    const text = "Its deliveries are deleted too, and nothing is sent any more.";
    if (!(await confirmed(`Delete ${hook.description || hook.id}?`, text, "Delete it"))) return;
    await send("DELETE", webhookPath(id)).then(() => (location.hash = "#/webhooks"), changed);
  }

  function drawDeliveries() {
    const pick = (event) => {
      state = event.target.value;
      changed();
    };
    const choices = [["", "all"], ...STATES.map((each) => [each, each])];
    return card(
      "deliveries",
      "Deliveries",
      h("div", { class: "filters" }, field("State", select({ onchange: pick }, choices, state))),
      grid("Deliveries", HEADINGS, deliveries.map((each) => ({ key: each.id, cells: line(each) })), "No matching deliveries."),
    );
  }

  function line(delivery) {
    const last = delivery.attempts.at(-1);
    const again = () => act(`${deliveryPath(delivery.id)}/replay`);
    return [
      [delivery.event_type, h("div", { class: "path" }, delivery.event_id)],
      h("span", { class: `badge ${BADGES[delivery.state]}` }, delivery.state),
      time(delivery.ended_at ?? delivery.created_at),
      number(delivery.attempts.length),
      last ? answer(last) : "–",
      hook.enabled && may("operator") && h("button", { type: "button", class: "small", "aria-label": `Replay ${delivery.event_id}`, onclick: again }, "Replay"),
    ];
  }

  return { title: () => (hook ? `Webhook ${hook.description || hook.id}` : "Webhook"), load, draw, isBusy: () => Boolean(hook?.enabled) && deliveries.some((each) => isDue(each, hook)) };
}

/** Returns whether an attempt may happen at any moment. In this case the page is polled, because no events report
 * attempts. */
function isDue(delivery, hook) {
  if (delivery.state !== "pending") return false;
  const retry = delivery.attempts.at(-1)?.retry_at;
  return retry ? Date.parse(retry) - Date.now() < SOON_MS : !hook.blocked.length;
}

const reason = (attempt) => (attempt.status === null ? attempt.error ?? "acknowledged" : `HTTP ${attempt.status}`);

function answer(attempt) {
  return h(
    "details",
    {},
    h("summary", {}, reason(attempt)),
    pairs(
      ["Took", seconds(attempt.milliseconds / 1000)],
      ["Tried", time(attempt.at)],
      ["Next try", attempt.retry_at && moment(attempt.retry_at)],
      ["Answer", attempt.response && h("code", {}, attempt.response)],
    ),
  );
}
