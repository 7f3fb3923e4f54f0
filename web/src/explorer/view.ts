// explorer/view: what the explorer shows <-> its query string, so that a copied link shows the same.
import { type Hiding, readHiding } from "../lineage/bridge.ts";
import type { Side } from "../lineage/picture.ts";

export type Grain = "application" | "all" | "dataset" | "job" | "run";

export interface Expansion {
  side: Side;
  /** How many times it was asked for more. */
  times: number;
  id: string;
}

export interface View {
  up: number;
  down: number;
  grain: Grain;
  columns: boolean;
  /** A column of the start whose whole way is shown instead of the start's neighbours. */
  column: string;
  /** A column that is followed within the picture. */
  trace: { dataset: string; field: string } | null;
  expanded: Expansion[];
  hidden: Hiding[];
  folded: string[];
  /** Cards that show all of their columns. */
  opened: string[];
  at: string;
  /** The earlier time that `at` is compared with. */
  versus: string;
  impact: boolean;
  runs: boolean;
  form: "graph" | "list" | "tree";
  selected: string;
}

export const MOST_HOPS = 20;
const GRAINS: Grain[] = ["application", "all", "dataset", "job", "run"];

export const PLAIN: View = {
  up: 1,
  down: 1,
  grain: "application",
  columns: false,
  column: "",
  trace: null,
  expanded: [],
  hidden: [],
  folded: [],
  opened: [],
  at: "",
  versus: "",
  impact: false,
  runs: false,
  form: "graph",
  selected: "",
};

export function readView(query: URLSearchParams): View {
  const hops = (name: string) => {
    const text = query.get(name) ?? query.get("depth"); // Marquez's UI has one depth for both
    const value = text === null ? 1 : Number(text);
    return Number.isInteger(value) && value >= 0 ? Math.min(value, MOST_HOPS) : 1;
  };
  const grain = query.get("grain") as Grain;
  const form = query.get("view");
  const [dataset, field] = (query.get("trace") ?? "").split("\n");
  return {
    up: hops("up"),
    down: hops("down"),
    grain: GRAINS.includes(grain) ? grain : "application",
    columns: query.get("columns") === "1",
    column: query.get("c") ?? "",
    trace: dataset && field ? { dataset, field } : null,
    expanded: query
      .getAll("x")
      .map(readExpansion)
      .filter((each) => each !== null),
    hidden: query
      .getAll("hide")
      .map(readHiding)
      .filter((each) => each !== null),
    folded: query.getAll("fold"),
    opened: query.getAll("open"),
    at: query.get("at") ?? "",
    versus: query.get("vs") ?? "",
    impact: query.get("mode") === "impact",
    runs: query.get("runs") === "1",
    form: form === "list" || form === "tree" ? form : "graph",
    selected: query.get("sel") ?? query.get("tableLevelNode") ?? "", // the latter in links of Marquez's UI
  };
}

export function writeView(view: View): URLSearchParams {
  const query = new URLSearchParams();
  const put = (name: string, value: string, plain = "") => {
    if (value !== plain) query.append(name, value);
  };
  put("up", String(view.up), "1");
  put("down", String(view.down), "1");
  put("grain", view.grain, "application");
  put("columns", view.columns ? "1" : "");
  put("c", view.column);
  put("trace", view.trace ? `${view.trace.dataset}\n${view.trace.field}` : "");
  for (const each of view.expanded) put("x", writeExpansion(each));
  for (const each of view.hidden) put("hide", `${each.kind}:${each.value}`);
  for (const each of view.folded) put("fold", each);
  for (const each of view.opened) put("open", each);
  put("at", view.at);
  put("vs", view.versus);
  put("mode", view.impact ? "impact" : "");
  put("runs", view.runs ? "1" : "");
  put("view", view.form, "graph");
  put("sel", view.selected);
  return query;
}

function readExpansion(text: string): Expansion | null {
  const found = /^(up|down)(\d*)~(.+)$/s.exec(text);
  if (!found) return null;
  return { side: found[1] as Side, times: Math.min(50, Math.max(1, Number(found[2] || 1))), id: found[3]! };
}

function writeExpansion(each: Expansion): string {
  return `${each.side}${each.times > 1 ? each.times : ""}~${each.id}`;
}

/** One step more from a node; a step that was taken shows more of it. */
export function expand(view: View, id: string, side: Side): View {
  const known = view.expanded.find((each) => each.id === id && each.side === side);
  const rest = view.expanded.filter((each) => each !== known);
  return { ...view, expanded: [...rest, { id, side, times: (known?.times ?? 0) + 1 }] };
}

export function contract(view: View, id: string, side: Side): View {
  return { ...view, expanded: view.expanded.filter((each) => each.id !== id || each.side !== side) };
}
