// lineage/merge: answers around several nodes -> one graph, and how many still stand behind each of its nodes.
import type { Graph } from "../api/model.ts";
import { type Drawn, type Edge, edgeKey, type Node, neighbours, type Side } from "./picture.ts";

export interface Answer {
  /** The node that was asked about, and which ways. */
  about: string;
  sides: Side[];
  graph: Graph;
}

export function merge(start: string, answers: Answer[]): Drawn {
  const nodes = new Map<string, Node>();
  const edges = new Map<string, Edge>();
  const columns = new Map<string, Graph["columns"][number]>();
  for (const { graph, about } of answers) {
    for (const node of graph.nodes) {
      const known = nodes.get(node.id);
      const distance = about === start ? (node.distance ?? 0) : Number.POSITIVE_INFINITY;
      const nearest = Math.min(distance, known?.distance ?? Number.POSITIVE_INFINITY);
      const { more: _, ...rest } = node;
      nodes.set(node.id, { ...known, ...rest, distance: nearest });
    }
    for (const edge of graph.edges) edges.set(edgeKey(edge), edge);
    for (const each of graph.columns)
      columns.set(`${each.from.dataset}\n${each.from.field}\n${each.to.dataset}\n${each.to.field}`, each);
  }
  const drawn: Drawn = { start, nodes, edges: [...edges.values()], columns: [...columns.values()] };
  for (const [id, more] of countMore(drawn, answers)) nodes.get(id)!.more = more;
  return drawn;
}

/**
 * Who was asked about itself knows. Of others, the most that any answer knew of, less what is drawn by now: what
 * one answer left out may stand in another.
 */
function countMore(drawn: Drawn, answers: Answer[]): Map<string, { up?: number; down?: number }> {
  const here = neighbours(drawn.edges);
  const found = new Map<string, { up?: number; down?: number }>();
  const perAnswer = answers.map((answer) => ({ ...answer, around: neighbours(answer.graph.edges) }));
  for (const side of ["up", "down"] as const) {
    const total = new Map<string, number>();
    const settled = new Map<string, number>();
    for (const { about, sides, graph, around } of perAnswer)
      for (const node of graph.nodes) {
        const left = node.more?.[side];
        if (node.id === about && sides.includes(side)) settled.set(node.id, left ?? 0);
        if (!left) continue;
        const known = (around[side].get(node.id)?.length ?? 0) + left;
        total.set(node.id, Math.max(known, total.get(node.id) ?? 0));
      }
    for (const [id, known] of total) {
      const left = settled.get(id) ?? known - (here[side].get(id)?.length ?? 0);
      if (left > 0) found.set(id, { ...found.get(id), [side]: left });
    }
  }
  return found;
}
