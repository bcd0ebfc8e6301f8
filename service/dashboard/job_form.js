// The form that starts a job. Each kind defines its fields.

import { post, problemOf, tablePath } from "./api.js";
import { h } from "./dom.js";
import { KINDS } from "./format.js";
import { bucketNumber, card, field, problem, select } from "./parts.js";

const RETAINED = {
  KEEP_LATEST_COMMITS: "Commits to keep",
  KEEP_LATEST_BY_HOURS: "Hours to keep",
  KEEP_LATEST_FILE_VERSIONS: "File versions to keep",
};
const POLICIES = [
  ["KEEP_LATEST_COMMITS", "keep the latest commits"],
  ["KEEP_LATEST_BY_HOURS", "keep the latest hours"],
  ["KEEP_LATEST_FILE_VERSIONS", "keep the latest file versions"],
];
const LAYOUTS = [
  ["linear", "one column after the other"],
  ["zorder", "z-order curve"],
  ["hilbert", "Hilbert curve"],
];
const TARGETS = [
  ["factor", "by a factor"],
  ["num_buckets", "to a number"],
];
const BESIDE_WRITERS = [
  ["wait", "wait for a moment without one"],
  ["fence", "roll it back: its batch has to be written again"],
  ["abort", "give up"],
];
const REPAIRS = [
  ["", "bring back the rows of stale writes"],
  ["true", "only remove what a diagnosis names as left behind"],
];
const METADATA_ACTIONS = [
  ["validate", "compare it with the storage"],
  ["rebuild", "build it anew"],
];
const SAVEPOINT_ACTIONS = [
  ["create", "create"],
  ["list", "list"],
  ["delete", "delete"],
];
const STRATEGIES = [
  ["KEEP_BY_TIME", "since their last modification"],
  ["KEEP_BY_CREATION_TIME", "since their creation"],
];
const SYNC_STRATEGIES = [
  ["ALL", "its name and _rt: merged; _ro: without logs"],
  ["RT", "one table, merged"],
  ["RO", "one table, without logs"],
];
const ENGINES = [
  ["auto", "Arrow where it is proved equal"],
  ["arrow", "Arrow, or refuse"],
  ["hudi", "Hudi's own"],
];
const CODECS = [
  ["", "as in the table"],
  ["gzip", "gzip"],
  ["snappy", "snappy"],
  ["zstd", "zstd"],
];
const ABOUT = {
  compaction: "Merges log files into new base files.",
  cleaning: "Deletes file slices that no retained instant needs.",
  clustering: "Sorts the rows; inside each bucket when the table has a bucket index. Or merges small files.",
  bucket_expansion: "Gives a bucket-indexed table more buckets, without a shuffle.",
  bucket_contraction: "Gives a bucket-indexed table fewer buckets: the files of several become one, without a shuffle.",
  finish_expansion: "Retires the hashing config of an expansion once every writer has the new number of buckets as its own option.",
  repair: "Recovers the rows of commits that wrote to replaced file groups, or with an old number of buckets.",
  archival: "Moves the oldest instants of the timeline to the history, and says what keeps others from that.",
  partition_ttl: "Drops partitions that were not modified, or created, for a number of days. Cleaning removes their files later.",
  savepoint: "Creates, lists or deletes savepoints: commits whose files are kept, and to which the table can be restored.",
  restore: "Takes the table back to a savepoint. All later commits are gone for good; the writers must be stopped.",
  rollback: "Rolls back a pending instant that nobody works on, or the latest completed commit.",
  metadata_table: "Compares the metadata table with the storage, or builds it anew while all writers are stopped.",
  sync: "Brings a Hive metastore up to the table: columns, partitions, and the commit that was synced last.",
  audit: "Proves the table: commits, metadata table and storage agree, every row is in its bucket, no key is there twice. It only reads.",
  diagnosis: "Looks for known damages of Hudi tables, and names the job that cures each. It only reads.",
};
const READING = ["audit", "diagnosis"];
// Types without an order.
const UNSORTABLE = /^(list|large_list|map|struct|fixed_size_list)</;

export function jobForm(changed) {
  // The choices that select the fields; all other values stay in the form's controls.
  const chosen = { kind: "compaction", policy: "KEEP_LATEST_COMMITS", target: "factor", sortBy: [], dryRun: true };
  let isSending = false;
  let failure = null;

  const set = (name) => (event) => {
    chosen[name] = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    failure = null;
    changed.redraw();
  };

  const FIELDS = {
    compaction: (table) => [
      field("At most, bytes to read", optional("limit_bytes"), "The newest partitions first. Empty: everything."),
      field("At most, file groups", optional("limit_file_groups"), "In the same order. Empty: all."),
      somePartitions(table, ""),
      field("Engine", select({ name: "engine" }, ENGINES, "auto")),
      field("Compression", select({ name: "codec" }, CODECS, "")),
    ],
    metadata_table: () => [field("Action", select({ name: "action" }, METADATA_ACTIONS, "validate"))],
    sync: (table) => [
      field("Metastore", text("metastore_uris", true), "thrift://host:9083, which the administrator must allow."),
      field("Database", text("database", false), "Empty: default."),
      field("Table", text("table", false), "Empty: the table's own name."),
      table.profile.table_type === "MERGE_ON_READ" && field("Tables", select({ name: "strategy" }, SYNC_STRATEGIES, "ALL")),
    ],
    audit: () => [],
    diagnosis: () => [],
    finish_expansion: () => [],
    repair: () => [
      field("What", select({ name: "leftovers" }, REPAIRS, "")),
      field("Wait for a moment without writes, seconds", numeric("wait_seconds", 300, 0, 86_400)),
      field(
        "Check these commits too",
        h("textarea", { name: "instants", rows: 2, spellcheck: "false" }),
        "Instants, one per line. Commits to replaced file groups are found without it.",
      ),
    ],
    archival: () => [field("Commits to keep on the timeline", numeric("retain", 30, 2, 1_000_000))],
    partition_ttl: (table) => [
      field("Days to keep a partition", numeric("days_retain", "", 1, 36_500)),
      field("Counted", select({ name: "strategy" }, STRATEGIES, "KEEP_BY_TIME")),
      field("At most, partitions", numeric("limit_partitions", 100, 1, 1000), "The oldest first."),
      somePartitions(table, ""),
    ],
    savepoint: () => [
      field("Action", select({ name: "action" }, SAVEPOINT_ACTIONS, "create")),
      field("Instant", text("instant", false), "Of the commit. Empty when creating: the latest completed one."),
      field("Comment", text("comment", false)),
    ],
    restore: () => [field("Savepoint", text("savepoint", true), "Its instant."), tableName(true)],
    rollback: () => [field("Instant", text("instant", true)), tableName(false)],
    cleaning: () => [
      field("Policy", select({ name: "policy", onchange: set("policy") }, POLICIES, chosen.policy)),
      field(RETAINED[chosen.policy], numeric("retain", 10, 1, 1_000_000)),
    ],
    clustering: (table) => [
      ...sortBy(table),
      (table.index || chosen.sortBy.length > 0) && field("Layout", select({ name: "layout" }, LAYOUTS, "linear")),
      somePartitions(table, ""),
      table.index &&
        field("Prepare for an expansion by the factor", numeric("expansion_factor", "", 2, 16), "Empty: not. That expansion then copies the rows undecoded."),
      ...(table.index ? besideWriters() : []),
    ],
    bucket_expansion: (table) => rescale(table, "Expand", 8, doubled(table), "A multiple of the current number."),
    bucket_contraction: (table) => rescale(table, "Contract", 1024, halved(table), "A divisor of the current number."),
  };

  function rescale(table, verb, mostFactor, number, about) {
    return [
      field(verb, select({ onchange: set("target") }, TARGETS, chosen.target)),
      chosen.target === "factor"
        ? field("Factor", numeric("factor", 2, 2, mostFactor))
        : field("New number of buckets", numeric("num_buckets", number, 1, 1_000_000), about),
      somePartitions(table, ", including later ones"),
      field("Compression", select({ name: "codec" }, CODECS, "")),
      ...besideWriters(),
    ];
  }

  function tableName(required) {
    const about = required ? "Rows are removed for good." : "Only for a completed instant: its rows are removed for good.";
    return field("The table's name, typed in", text("table_name", required), about);
  }

  function somePartitions(table, later) {
    const about = `Paths as in storage, one per line; region=eu/* matches all that begin with region=eu/${later}. Empty: the whole table.`;
    const hasPartitions = (table.profile.partition_fields ?? []).length > 0;
    return hasPartitions && field("Only these partitions", h("textarea", { name: "partitions", rows: 2, spellcheck: "false" }), about);
  }

  function besideWriters() {
    return [field("A write in flight at the end", select({ name: "on_active_writers" }, BESIDE_WRITERS, "wait"))];
  }

  function sortBy({ profile, index: itsIndex }) {
    // Without a bucket index small files can be merged in any order.
    const isNeeded = Boolean(itsIndex);
    const names = (profile.columns ?? []).filter((column) => !UNSORTABLE.test(column.type)).map((column) => column.name);
    if (!names.length) {
      return [field("Sort by", h("input", { name: "sort_by", required: isNeeded, spellcheck: "false" }), "Columns, separated by commas.")];
    }
    const pick = (index) => (event) => {
      chosen.sortBy = [...chosen.sortBy.slice(0, index), event.target.value, ...chosen.sortBy.slice(index + 1)].filter(Boolean);
      changed.redraw();
    };
    const isFull = chosen.sortBy.length === names.length;
    return [...chosen.sortBy, ...(isFull ? [] : [""])].map((name, index) => {
      const free = names.filter((each) => each === name || !chosen.sortBy.includes(each));
      const choices = [["", index ? "(no more)" : isNeeded ? "(choose a column)" : "(none: only merge small files)"], ...free.map((each) => [each, each])];
      const label = index ? `Then by (${index + 1})` : "Sort by";
      // The key contains the choice, because removing one moves the others up.
      const properties = { name: "sort_by", required: isNeeded && index === 0, "data-key": `${index} ${name}`, onchange: pick(index) };
      return field(label, select(properties, choices, name));
    });
  }

  async function send(event, table) {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    failure = null;
    const form = new FormData(event.target);
    const body = {
      kind: chosen.kind,
      params: params(chosen.kind, form),
      dry_run: chosen.dryRun && !READING.includes(chosen.kind),
      ...integers(form, "timeout_seconds"),
    };
    changed.redraw();
    try {
      const job = await post(`${tablePath(table.id)}/jobs`, body);
      location.hash = `#/jobs/${encodeURIComponent(job.id)}`;
    } catch (error) {
      failure = problemOf(error);
    } finally {
      isSending = false;
      changed.redraw();
    }
  }

  function draw(table) {
    const onlyReads = READING.includes(chosen.kind);
    const words = onlyReads ? `Start the ${chosen.kind}` : chosen.dryRun ? "Plan it (dry run)" : "Start the job";
    return card(
      "form",
      "Start a job",
      h(
        "form",
        { onsubmit: (event) => send(event, table) },
        field("Kind", select({ onchange: set("kind") }, Object.entries(KINDS), chosen.kind)),
        h("p", { class: "quiet" }, ABOUT[chosen.kind], caveat(chosen.kind, table)),
        h(
          "div",
          { class: "fields", "data-key": `fields of ${chosen.kind}` },
          ...FIELDS[chosen.kind](table),
          field("Time limit of an attempt, seconds", optional("timeout_seconds"), "Empty: that of the policy or of the service."),
        ),
        !onlyReads &&
          h(
            "label",
            { class: "check", "data-key": "dry run" },
            h("input", { type: "checkbox", checked: true, onchange: set("dryRun") }),
            " Dry run: show the plan, change nothing",
          ),
        failure && problem(failure),
        h("div", { class: "actions" }, h("button", { class: "primary", disabled: isSending }, isSending ? "Sending …" : words)),
      ),
    );
  }

  return { draw };
}

function numeric(name, value, min, max) {
  return h("input", { type: "number", name, value, min, max, required: true, inputmode: "numeric" });
}

function optional(name) {
  return h("input", { type: "number", name, min: 1, inputmode: "numeric" });
}

function text(name, required) {
  return h("input", { name, required, spellcheck: "false", autocomplete: "off" });
}

function doubled(table) {
  return Math.max(2, 2 * (bucketNumber(table) ?? 1));
}

function halved(table) {
  return Math.max(1, Math.floor((bucketNumber(table) ?? 2) / 2));
}

function caveat(kind, table) {
  if (kind === "compaction" && table.profile.table_type === "COPY_ON_WRITE") return " This table is copy-on-write: it has no logs.";
  if ((kind === "bucket_expansion" || kind === "bucket_contraction") && !table.index) return " This table has no known bucket index.";
  return "";
}

/** The numbers that were given. */
function integers(data, ...names) {
  return Object.fromEntries(names.filter((name) => data.get(name)).map((name) => [name, Number(data.get(name))]));
}

/** The API's parameters from the form's controls. */
function params(kind, data) {
  const words = (name, separator) => data.getAll(name).flatMap((text) => text.split(separator)).map((each) => each.trim()).filter(Boolean);
  const numbers = (...names) => integers(data, ...names);
  const partitions = words("partitions", "\n").map((line) => (line.endsWith("*") ? { prefix: line.slice(0, -1) } : line));
  const chosenPartitions = partitions.length ? { partitions } : {};
  const choices = (...names) => Object.fromEntries(names.filter((name) => data.get(name)).map((name) => [name, data.get(name)]));
  switch (kind) {
    case "compaction":
      return { ...numbers("limit_bytes", "limit_file_groups"), ...chosenPartitions, ...choices("engine", "codec") };
    case "cleaning":
      return { policy: data.get("policy"), ...numbers("retain") };
    case "clustering": {
      const columns = words("sort_by", ",");
      const order = columns.length ? { sort_by: columns, ...choices("layout") } : {};
      return { ...order, ...numbers("expansion_factor"), ...chosenPartitions, ...choices("on_active_writers") };
    }
    case "bucket_expansion":
    case "bucket_contraction":
      return { ...numbers("factor", "num_buckets"), ...chosenPartitions, ...choices("codec", "on_active_writers") };
    case "metadata_table":
      return choices("action");
    case "archival":
      return numbers("retain");
    case "partition_ttl":
      return { ...numbers("days_retain", "limit_partitions"), ...choices("strategy"), ...chosenPartitions };
    case "sync":
      return choices("metastore_uris", "database", "table", "strategy");
    case "savepoint":
      return choices("action", "instant", "comment");
    case "restore":
      return choices("savepoint", "table_name");
    case "rollback":
      return choices("instant", "table_name");
    case "repair": {
      if (data.get("leftovers")) return { leftovers: true };
      const instants = words("instants", "\n");
      return { ...numbers("wait_seconds"), ...(instants.length ? { instants } : {}) };
    }
    default:
      return {};
  }
}
