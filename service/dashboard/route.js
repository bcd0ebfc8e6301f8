// The address of a view is the part of the URL after #, such as #/tables/tbl_1 or #/?q=orders&sort=name.

/** Returns the address in two parts: `path` is the list of its names, `query` an object of texts. */
export function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the address of a view. Empty values are left out. */
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
