// The address of a view: the part after #, such as #/tables/tbl_1 or #/?q=orders&sort=name.

/** `path` is the list of its parts, `query` an object of texts. */
export function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a view; empty values are left out. */
export function address(path, query) {
  const known = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(known).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
