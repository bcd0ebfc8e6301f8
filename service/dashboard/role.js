// What the caller may do. The service refuses the rest; the pages only leave out the forms for it.

const RANKS = { reader: 1, operator: 2, admin: 3 };

let role = null;

/** Notes the caller, as `whoAmI` answers; null when nobody is logged in. */
export function learn(caller) {
  role = caller?.role ?? null;
}

/** Whether the caller has this role, or one that includes it. */
export const may = (wanted) => (RANKS[role] ?? 0) >= RANKS[wanted];
