// Tabs as ARIA defines them: the tab key stops once at all tabs, and the arrow keys move between them. The address
// contains the chosen tab.

import { h } from "./dom.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/** `all` are pairs of key and title; `choose` gets a key; `panel` are the nodes of the chosen tab. */
export function tabs(label, all, chosen, choose, panel) {
  const keys = all.map(([key]) => key);
  const walk = (event) => {
    const step = STEPS[event.key];
    // The focus is ahead of `chosen` until the page is drawn again. The user may press the next key before that.
    const at = keys.indexOf(event.target.dataset.key);
    const target = event.key === "Home" ? 0 : event.key === "End" ? keys.length - 1 : step && (at + step + keys.length) % keys.length;
    if (target === undefined) return;
    event.preventDefault();
    document.getElementById(`tab-${keys[target]}`).focus();
    choose(keys[target]);
  };
  const tab = ([key, title]) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${key}`,
        "data-key": key,
        "aria-selected": String(key === chosen),
        "aria-controls": "panel",
        tabindex: key === chosen ? "0" : "-1",
        onclick: () => choose(key),
      },
      title,
    );
  return [
    h("div", { class: "tabs", role: "tablist", "aria-label": label, "data-key": "tabs", onkeydown: walk }, ...all.map(tab)),
    h("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${chosen}`, "data-key": `panel ${chosen}`, tabindex: "0" }, ...panel),
  ];
}
