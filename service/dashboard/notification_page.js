// One notification: its state, the problems that it has reported, a test message with the target's answer, snoozing,
// and a form with the fields of the API.

import { attempt, deliveryPath, get, getTagged, NEW, post, send } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count, number, seconds } from "./format.js";
import { card, field, grid, link, pairs, problem, select, time } from "./components.js";
import { state } from "./notifications_page.js";
import { may } from "./role.js";
import { schemaFields } from "./schema_form.js";
import { membersOf, targets } from "./schemas.js";
import { BADGES } from "./webhooks_page.js";

const HOURS = [["1", "an hour"], ["8", "8 hours"], ["24", "a day"], ["168", "a week"]];
const HEADINGS = ["Severity", "Alert", "Problems", "Since"];

export function notificationPage(name, changed, { type = "slack" } = {}) {
  const path = `v1/notifications/${encodeURIComponent(name)}`;
  let found = null;
  let tag = null;
  const ofTargets = membersOf("TargetIn");
  const types = targets();
  const own = new Map([...membersOf("NotificationIn")].filter(([member]) => member !== "target"));
  let values = null;
  let failure = null;
  let said = null;
  let secret = null;
  let isEdited = false;
  let isRemoved = false;
  let test = null;
  let revision = 0;

  async function load() {
    const isThere = (await get("v1/notifications")).items.some((each) => each.name === name);
    if (isRemoved) return;
    const latest = isThere ? await getTagged(path) : null;
    found = latest?.document ?? null;
    // The tag identifies the state on which the edits are based, so that state is kept.
    if (!isEdited) take(latest);
    if (test?.state === "pending") test = await get(deliveryPath(test.id));
  }

  function take(latest) {
    tag = latest?.tag ?? null;
    const now = latest ? Object.fromEntries([...own.keys(), "target"].map((each) => [each, latest.document[each]])) : { target: { type } };
    if (JSON.stringify(now) === JSON.stringify(values)) return;
    values = now;
    revision += 1;
  }

  function draw() {
    if (!values) return [];
    return [
      h("h1", { "data-key": "title" }, link("#/notifications", "Notification"), ` ${name}`),
      secret && h("div", { class: "problem good", role: "status", "data-key": "secret" }, h("strong", {}, "Its messages are signed with this secret, which is shown only now:"), h("code", { class: "secret" }, secret)),
      said && h("p", { class: "problem good", role: "status", "data-key": "said" }, said),
      found ? standing() : h("p", { class: "quiet", "data-key": "new" }, "There is no notification of this name yet."),
      found && drawAlerts(),
      may("admin") && form(),
    ];
  }

  function standing() {
    const isSnoozed = found.snoozed_until && Date.parse(found.snoozed_until) > Date.now();
    return card(
      "standing",
      "State",
      pairs(
        ["State", state(found)],
        ["Target", found.target.type],
        ["Messages", `${number(found.sent_last_hour)} of ${number(found.most_per_hour)} in the last hour`],
        ["Problems", `${number(found.told)} reported, ${number(found.waiting)} waiting`],
        ["Given up", found.dead > 0 && number(found.dead)],
        ["Last success", found.last_success_at ? time(found.last_success_at) : "never"],
        ["Deliveries", link(`#/webhooks/${encodeURIComponent(found.webhook_id)}`, "all messages with their answers")],
      ),
      may("operator") &&
        h(
          "div",
          { class: "actions line", "data-key": "actions" },
          h("button", { type: "button", onclick: sendTest, disabled: !found.enabled }, "Send a test message"),
          isSnoozed && h("button", { type: "button", onclick: () => act(send("DELETE", `${path}/snooze`)) }, "Wake it"),
          may("admin") && h("button", { type: "button", class: "danger", onclick: remove }, "Remove"),
        ),
      test && answer(),
      may("operator") && !isSnoozed && snoozing(),
    );
  }

  function answer() {
    const last = test.attempts.at(-1);
    const words = last && (last.status === null ? (last.error ?? "accepted") : `HTTP ${last.status}`);
    return h(
      "div",
      { class: `problem ${test.state === "delivered" ? "good" : test.state === "dead" ? "bad" : "note"}`, role: "status", "data-key": "test" },
      h("strong", {}, "Test message: "),
      h("span", { class: `badge ${BADGES[test.state]}` }, test.state),
      last && ` ${words}, after ${seconds(last.milliseconds / 1000)}`,
      last?.response && h("pre", {}, last.response),
    );
  }

  function snoozing() {
    const snooze = (event) => {
      event.preventDefault();
      const data = new FormData(event.target);
      const until = new Date(Date.now() + data.get("hours") * 3_600_000).toISOString();
      const reason = data.get("reason").trim();
      void act(send("PUT", `${path}/snooze`, { until, ...(reason && { reason }) }));
    };
    return h(
      "form",
      { class: "filters again", onsubmit: snooze, "data-key": "snooze" },
      field("Snooze for", select({ name: "hours" }, HOURS, "8")),
      field("Reason", h("input", { name: "reason", maxlength: 1000, autocomplete: "off" })),
      h("div", { class: "actions" }, h("button", {}, "Snooze")),
    );
  }

  function drawAlerts() {
    const rows = found.alerts.map((each) => ({ key: each.key, cells: [each.severity, each.title, number(each.problems), time(each.began_at)] }));
    return card("alerts", `Open alerts (${number(rows.length)})`, grid("Open alerts", HEADINGS, rows, "No reported problem is still open."));
  }

  const act = (call) => call.then(() => changed(), changed);

  async function sendTest() {
    try {
      test = await post(`${path}/test`);
      changed();
    } catch (error) {
      changed(error);
    }
  }

  async function remove() {
    if (!(await confirmed(`Remove the notification ${name}?`, `Its messages are deleted too, and the end of ${count(found.told, "open problem")} is not reported.`, "Remove it"))) return;
    // Set before the request, because a load at this moment must not ask for the deleted notification.
    isRemoved = true;
    const failed = (error) => {
      isRemoved = false;
      changed(error);
    };
    await send("DELETE", path).then(() => (location.hash = "#/notifications"), failed);
  }

  function save(event) {
    event.preventDefault();
    [failure, said] = [null, null];
    const put = async () => {
      const answer = await send("PUT", path, values, tag ?? NEW);
      [said, secret, isEdited] = ["Saved. Problems that are already open are reported within seconds.", answer.secret, false];
    };
    return attempt(put, changed, (found) => (failure = found));
  }

  function discard() {
    [isEdited, failure, values] = [false, null, null];
    changed();
  }

  function form() {
    const edited = () => {
      [isEdited, said] = [true, null];
      changed.redraw();
    };
    const set = (member, value) => {
      values = { ...values, [member]: value };
      edited();
    };
    const setTarget = (member, value) => {
      values.target = { ...values.target, [member]: value };
      if (value === null) delete values.target[member];
      edited();
    };
    const choose = (event) => {
      values.target = { type: event.target.value };
      edited();
    };
    const needed = types[values.target.type];
    const members = [...ofTargets].filter(([member]) => member in needed).map(([member, schema]) => [member, { ...schema, isOptional: !needed[member], isRequired: needed[member] }]);
    return card(
      "edit",
      found ? "Change it" : "Add it",
      h(
        "form",
        { class: "narrow", onsubmit: save, "data-key": "form" },
        h("fieldset", { class: "plain" }, h("legend", {}, "Target"), field("Type", select({ onchange: choose }, Object.keys(types).map((each) => [each, each]), values.target.type)), ...schemaFields(members, values.target, setTarget, `${values.target.type} ${revision}`)),
        ...schemaFields(own, values, set, revision),
        failure && problem(failure),
        h("div", { class: "actions" }, h("button", { class: "primary", disabled: !isEdited && Boolean(found) }, found ? "Save" : "Add"), isEdited && found && h("button", { type: "button", onclick: discard }, "Discard")),
      ),
    );
  }

  return { title: () => `Notification ${name}`, load, draw, isBusy: () => test?.state === "pending" };
}
