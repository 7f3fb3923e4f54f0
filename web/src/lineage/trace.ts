// lineage/trace: a node or a column -> all that leads to it and all it leads to, within what is drawn.
import type { Relation } from "../api/model.ts";
import { type Edge, edgeKey, fieldKey, neighbours } from "./picture.ts";

export interface Trace {
  nodes: Set<string>;
  edges: Set<string>;
}

/** Up and down apart: the other readers of a source are on no way through the node. */
export function traceNode(edges: Edge[], id: string): Trace {
  const around = neighbours(edges);
  const nodes = new Set([id]);
  const along = new Set<string>();
  for (const side of ["up", "down"] as const) {
    const seen = new Set([id]);
    const front = [id];
    for (let node = front.pop(); node !== undefined; node = front.pop())
      for (const other of around[side].get(node) ?? []) {
        along.add(side === "up" ? edgeKey({ from: other, to: node }) : edgeKey({ from: node, to: other }));
        if (seen.has(other)) continue;
        seen.add(other);
        nodes.add(other);
        front.push(other);
      }
  }
  return { nodes, edges: along };
}

export interface ColumnTrace {
  fields: Set<string>;
  datasets: Set<string>;
  relations: Set<Relation>;
}

export function traceColumn(relations: Relation[], dataset: string, field: string): ColumnTrace {
  const into = new Map<string, Relation[]>();
  const out = new Map<string, Relation[]>();
  for (const each of relations) {
    for (const [map, key] of [
      [into, fieldKey(each.to)],
      [out, fieldKey(each.from)],
    ] as const) {
      const have = map.get(key);
      if (have) have.push(each);
      else map.set(key, [each]);
    }
  }
  const start = fieldKey({ dataset, field });
  const found: ColumnTrace = { fields: new Set([start]), datasets: new Set([dataset]), relations: new Set() };
  for (const [map, end] of [
    [into, "from"],
    [out, "to"],
  ] as const) {
    const seen = new Set([start]);
    const front = [start];
    for (let at = front.pop(); at !== undefined; at = front.pop())
      for (const each of map.get(at) ?? []) {
        found.relations.add(each);
        const next = fieldKey(each[end]);
        if (seen.has(next)) continue;
        seen.add(next);
        found.fields.add(next);
        found.datasets.add(each[end].dataset);
        front.push(next);
      }
  }
  return found;
}
