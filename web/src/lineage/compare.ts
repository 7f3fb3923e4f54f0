// lineage/compare: the graph at two times -> both in one picture, and what was added, went, or changed.
import { type Drawn, edgeKey } from "./picture.ts";

export type Mark = "added" | "removed" | "changed";

export interface Compared {
  drawn: Drawn;
  nodes: Map<string, Mark>;
  edges: Map<string, Mark>;
  columns: Map<string, Mark>;
}

const relationKey = (each: Drawn["columns"][number]): string =>
  `${each.from.dataset}\n${each.from.field}\n${each.to.dataset}\n${each.to.field}`;

export function compare(before: Drawn, after: Drawn, changed: Iterable<string> = []): Compared {
  const nodes = new Map<string, Mark>();
  const edges = new Map<string, Mark>();
  const columns = new Map<string, Mark>();
  mark(nodes, before.nodes.keys(), after.nodes.keys());
  mark(edges, before.edges.map(edgeKey), after.edges.map(edgeKey));
  mark(columns, before.columns.map(relationKey), after.columns.map(relationKey));
  for (const id of changed) if (!nodes.has(id)) nodes.set(id, "changed");
  const drawn: Drawn = {
    start: after.start,
    nodes: new Map([...before.nodes, ...after.nodes]),
    edges: [...new Map([...before.edges, ...after.edges].map((edge) => [edgeKey(edge), edge])).values()],
    columns: [
      ...new Map([...before.columns, ...after.columns].map((each) => [relationKey(each), each])).values(),
    ],
  };
  return { drawn, nodes, edges, columns };
}

function mark(marks: Map<string, Mark>, before: Iterable<string>, after: Iterable<string>): void {
  const old = new Set(before);
  const now = new Set(after);
  for (const each of now) if (!old.has(each)) marks.set(each, "added");
  for (const each of old) if (!now.has(each)) marks.set(each, "removed");
}
