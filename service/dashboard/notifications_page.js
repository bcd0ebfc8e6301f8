// All notifications with their state, and a form that begins a new one.

import { get } from "./api.js";
import { h } from "./dom.js";
import { moment, number } from "./format.js";
import { card, field, grid, link, select, time } from "./components.js";
import { windowsInWords } from "./quantities.js";
import { may } from "./role.js";
import { address } from "./route.js";
import { targets } from "./schemas.js";

const HEADINGS = ["Notification", "Tells", "Of", "State", "Last hour", "Last success"];

export function notificationsPage() {
  let items = null;

  async function load() {
    items = (await get("v1/notifications")).items;
  }

  function draw() {
    if (!items) return [];
    return [
      h("h1", { "data-key": "title" }, "Notifications"),
      h("p", { class: "quiet narrow", "data-key": "about" }, "Notifications tell people which problems have opened or ended, and which jobs have failed for good, with one message for each cause. ", link("#/webhooks", "Webhooks"), " are for programs."),
      card(
        "notifications",
        `Notifications (${number(items.length)})`,
        grid("Notifications", HEADINGS, items.map((each) => ({ key: each.name, cells: cells(each) })), "There are no notifications yet."),
      ),
      may("admin") && adding(Object.keys(targets())),
    ];
  }

  return { title: () => "Notifications", load, draw, isBusy: () => false };
}

function adding(types) {
  const open = (event) => {
    event.preventDefault();
    const data = new FormData(event.target);
    location.hash = address(["notifications", data.get("name").trim()], { type: data.get("type") });
  };
  return card(
    "add",
    "Add a notification",
    h(
      "form",
      { class: "narrow", onsubmit: open, "data-key": "form" },
      field("Name", h("input", { name: "name", required: true, maxlength: 64, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*", placeholder: "on-call", spellcheck: "false", autocomplete: "off" })),
      field("Target", select({ name: "type" }, types.map((each) => [each, each]), types[0])),
      h("div", { class: "actions" }, h("button", { class: "primary" }, "Fill in its target")),
    ),
  );
}

function cells(each) {
  const { name, target, events, least_severity: least, kinds, tables, quiet_hours: quiet, time_zone: zone, sent_last_hour: sent, most_per_hour: most, last_success_at: last } = each;
  return [
    [link(address(["notifications", name], {}), name), h("div", { class: "quiet" }, target.type)],
    [events.join(", "), quiet.length > 0 && h("div", { class: "quiet" }, `quiet ${windowsInWords(quiet)}, ${zone}`)],
    [`${least} and more serious`, h("div", { class: "quiet" }, [kinds.join(", "), tables.length ? `of ${tables.join(", ")}` : "of all tables"].filter(Boolean).join(" "))],
    state(each),
    `${number(sent)} of ${number(most)}`,
    last ? time(last) : "never",
  ];
}

export function state({ enabled, disabled_because: why, snoozed_until: until, snoozed_because: because, failing_since: failing, pending, last_success_at: last }) {
  if (!enabled) return [h("span", { class: "badge failed" }, "disabled"), h("div", { class: "quiet" }, why)];
  if (until && Date.parse(until) > Date.now()) return [h("span", { class: "badge unknown" }, "snoozed"), h("div", { class: "quiet" }, `until ${moment(until)}${because ? `, ${because}` : ""}`)];
  if (failing) return [h("span", { class: "badge unknown" }, "failing"), " since ", time(failing)];
  return [h("span", { class: "badge succeeded" }, last ? "working" : "new"), pending > 0 && ` ${number(pending)} waiting`];
}
