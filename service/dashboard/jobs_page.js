// All jobs, newest first. The filter is in the address.

import { all } from "./api.js";
import { Active } from "./active.js";
import { h } from "./dom.js";
import { Recent } from "./recent.js";

export function jobsPage(changed, query = {}) {
  const active = new Active();
  const recent = new Recent({}, query);
  let names = new Map();
  let isNamed = false;

  async function load() {
    const [jobs] = await Promise.all([active.load(), recent.load(), active.loadForecast(), isNamed || name()]);
    recent.learn(jobs);
    // A table that was registered since.
    if ([...recent.seen.values(), ...jobs].some((job) => !names.has(job.table_id))) await name();
  }

  async function name() {
    const tables = await all("v1/tables");
    names = new Map(tables.sort((a, b) => a.name.localeCompare(b.name)).map((table) => [table.id, table.name]));
    isNamed = true;
  }

  function draw() {
    if (!isNamed) return [];
    return [h("h1", { "data-key": "title" }, "Jobs"), active.jobs.length > 0 && active.draw(names, changed), recent.draw(names, changed)];
  }

  return {
    title: () => "Jobs",
    load,
    draw,
    choose: (wanted) => recent.choose(wanted),
    isBusy: () => active.isMoving,
    refresh: () => active.refresh(),
  };
}
