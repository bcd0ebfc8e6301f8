// The acknowledgement of a problem: until it ends, or for some time, with a reason.

import { send } from "./api.js";
import { h } from "./dom.js";
import { moment } from "./format.js";
import { field, select, time } from "./components.js";
import { may } from "./role.js";

const PERIODS = [["", "until it ends"], ["1", "for an hour"], ["8", "for 8 hours"], ["24", "for a day"], ["168", "for a week"]];

export function acknowledgement({ id, title, about, acknowledged }, changed) {
  const path = `v1/problems/${encodeURIComponent(id)}/acknowledgement`;
  if (acknowledged) {
    const { by, at, until, reason } = acknowledged;
    const takeBack = () => send("DELETE", path).then(() => changed(), changed);
    return h(
      "p",
      { class: "line", "data-key": "known" },
      h("span", {}, `Acknowledged by ${by}, `, time(at), until && `, until ${moment(until)}`, reason && `: ${reason}`),
      may("operator") && h("button", { type: "button", class: "small", "aria-label": `Take back the acknowledgement of ${title}, ${about.name}`, onclick: takeBack }, "Take back"),
    );
  }
  if (!may("operator")) return null;
  const save = (event) => {
    event.preventDefault();
    const data = new FormData(event.target);
    const until = data.get("hours") && new Date(Date.now() + data.get("hours") * 3_600_000).toISOString();
    const reason = data.get("reason").trim();
    send("PUT", path, { ...(until && { until }), ...(reason && { reason }) }).then(() => changed(), changed);
  };
  return h(
    "details",
    { "data-key": "acknowledge" },
    h("summary", { "aria-label": `Acknowledge ${title}, ${about.name}` }, "Acknowledge"),
    h("form", { class: "filters again", onsubmit: save }, field("How long", select({ name: "hours" }, PERIODS, "")), field("Why", h("input", { name: "reason", maxlength: 1000, autocomplete: "off" })), h("div", { class: "actions" }, h("button", {}, "Acknowledge"))),
  );
}
