// The policies of all patterns, with the settings of each and the tables that get settings from it.

import { get } from "./api.js";
import { h } from "./dom.js";
import { number, sentence } from "./format.js";
import { card, field, grid, link, time } from "./components.js";
import { settingsInWords } from "./policy_words.js";
import { may } from "./role.js";
import { address } from "./route.js";

const HEADINGS = ["Pattern", "Precedence", "Settings", "Decides for"];

export function policiesPage(changed) {
  let policies = null;
  let advice = [];
  let shadows = [];

  async function load() {
    [policies, shadows, advice] = (await Promise.all(["v1/policies", "v1/policy-shadows", "v1/advice"].map((each) => get(each)))).map((each) => each.items);
  }

  function draw() {
    if (!policies) return [];
    const rows = policies.map((each) => ({ key: each.pattern, cells: cells(each) }));
    return [
      h("h1", { "data-key": "title" }, "Policies"),
      h(
        "p",
        { class: "quiet narrow", "data-key": "about" },
        "The first of these that has a setting decides: the table's own policy, the matching patterns in the order of precedence, the defaults. The ",
        link("#/calendar", "calendar"),
        " shows their windows, and freezes.",
      ),
      card("policies", `Policies of patterns (${number(policies.length)})`, grid("Policies of patterns", HEADINGS, rows, "No pattern has a policy yet: the defaults apply.")),
      shadows.length > 0 && card("shadows", `Shadows (${number(shadows.length)})`, grid("Shadows of policies", ["Pattern", "Settings", "Since"], shadows.map((each) => ({ key: each.pattern, cells: [toPattern(each.pattern), settingsInWords(each.settings), time(each.started_at)] })))),
      advice.length > 0 && card("advice", `Advice (${number(advice.length)})`, grid("Advice about tables", ["Table", "Advice"], advice.map((each) => ({ key: each.table_id, cells: [link(`#/tables/${encodeURIComponent(each.table_id)}?tab=policy`, each.name), sentence(each.because)] })))),
      may("operator") && opening(changed),
    ];
  }

  return { title: () => "Policies", load, draw, isBusy: () => false };
}

function opening() {
  const open = (event) => {
    event.preventDefault();
    location.hash = address(["policies", new FormData(event.target).get("pattern").trim()], {});
  };
  return card(
    "open",
    "Set a policy",
    h(
      "form",
      { class: "narrow", onsubmit: open, "data-key": "form" },
      field("Pattern", h("input", { name: "pattern", required: true, maxlength: 255, pattern: ".*\\S.*", placeholder: "orders_*", spellcheck: "false", autocomplete: "off" }), "A pattern of names of tables (orders_*), of tags (tag:team=shop) or of owners (owner:shop)."),
      h("div", { class: "actions" }, h("button", { class: "primary" }, "Edit its policy")),
    ),
  );
}

function cells({ pattern, precedence, settings, tables, table_names: names }) {
  const more = tables - names.length;
  return [
    toPattern(pattern),
    number(precedence),
    settingsInWords(settings),
    tables ? [h("strong", {}, number(tables)), " ", h("span", { class: "quiet" }, names.join(", "), more > 0 && ` and ${number(more)} more`)] : h("span", { class: "tag warn" }, "no table"),
  ];
}

const toPattern = (pattern) => link(address(["policies", pattern], {}), h("code", {}, pattern));
