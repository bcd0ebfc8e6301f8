// The role of the caller. The service itself refuses forbidden calls; pages only leave out the forms for such calls.

const RANKS = { reader: 1, operator: 2, admin: 3 };

let role = null;

/** Records the caller from the answer of `whoAmI`; null when nobody is logged in. */
export function learn(caller) {
  role = caller?.role ?? null;
}

/** Returns whether the caller has this role, or a role that includes this one. */
export const may = (wanted) => (RANKS[role] ?? 0) >= RANKS[wanted];
