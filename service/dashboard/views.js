// The view of an address.

import { Away } from "./api.js";
import { overview } from "./overview.js";

/** Returns the view of an address. The view calls `changed` after an action. */
export function viewOf({ path: [kind, id, part], query }, changed) {
  if (kind === "tables" && id && part === "policy") return later(() => import("./policy_page.js"), ({ policyPage }) => policyPage(id, changed));
  if (kind === "tables" && id) return later(() => import("./table_page.js"), ({ tablePage }) => tablePage(id, changed, query));
  if (kind === "jobs" && id) return later(() => import("./job_page.js"), ({ jobPage }) => jobPage(id, changed));
  if (kind === "jobs") return later(() => import("./jobs_page.js"), ({ jobsPage }) => jobsPage(changed, query));
  if (kind === "webhooks" && id) return later(() => import("./webhook_page.js"), ({ webhookPage }) => webhookPage(id, changed));
  if (kind === "workers") return later(() => import("./workers_page.js"), ({ workersPage }) => workersPage(changed));
  if (kind === "discover") return later(() => import("./discover_page.js"), ({ discoverPage }) => discoverPage(changed));
  if (kind === "register") return later(() => import("./register_page.js"), ({ registerPage }) => registerPage(changed));
  if (kind === "webhooks") return later(() => import("./webhooks_page.js"), ({ webhooksPage }) => webhooksPage(changed));
  if (kind === "policies" && id) return later(() => import("./pattern_page.js"), ({ patternPage }) => patternPage(id, changed));
  if (kind === "policies") return later(() => import("./policies_page.js"), ({ policiesPage }) => policiesPage(changed));
  if (kind === "calendar") return later(() => import("./calendar_page.js"), ({ calendarPage }) => calendarPage(changed, query));
  if (kind === "notifications" && id) return later(() => import("./notification_page.js"), ({ notificationPage }) => notificationPage(id, changed, query));
  if (kind === "notifications") return later(() => import("./notifications_page.js"), ({ notificationsPage }) => notificationsPage());
  if (kind === "report") return later(() => import("./report_page.js"), ({ reportPage }) => reportPage(changed, query));
  if (kind === "audit") return later(() => import("./audit_page.js"), ({ auditPage }) => auditPage(changed));
  return overview(changed, query);
}

/** Returns a view whose modules are fetched only when it is opened, so that the overview need not wait for them. */
function later(fetched, make) {
  const view = {
    title: () => "Loading",
    draw: () => [],
    async load() {
      const module = await fetched().catch(() => {
        throw new Away();
      });
      Object.assign(view, make(module));
      return view.load();
    },
  };
  return view;
}
