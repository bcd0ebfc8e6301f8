// All jobs, newest first. The filter is in the address.

import { Active } from "./active.js";
import { h } from "./dom.js";
import { Recent } from "./recent.js";

export function jobsPage(changed, query = {}) {
  const active = new Active();
  const recent = new Recent({}, query);

  async function load() {
    const [jobs] = await Promise.all([active.load(), recent.load(), active.loadForecast()]);
    // The first list shows active jobs. The second one shows an active job only if it has shown that job before.
    recent.learn(jobs.filter((each) => recent.seen.has(each.id)));
  }

  function draw() {
    return [h("h1", { "data-key": "title" }, "Jobs"), active.jobs.length > 0 && active.draw(true, changed), recent.draw(true, changed)];
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
