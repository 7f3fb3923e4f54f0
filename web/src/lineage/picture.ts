// lineage/picture: what the explorer draws: nodes and edges of one or several answers, with what filters made of them.
import type { GraphNode, Relation } from "../api/model.ts";

export interface Node extends Omit<GraphNode, "type"> {
  type: GraphNode["type"] | "GROUP";
  /** How many a group stands for. */
  members?: number;
}

export interface Edge {
  from: string;
  to: string;
  via?: string[];
  /** How many nodes stand between that a filter hides. */
  hidden?: number;
}

export interface Drawn {
  start: string;
  nodes: Map<string, Node>;
  edges: Edge[];
  columns: Relation[];
}

export type Side = "up" | "down";

export const edgeKey = (edge: { from: string; to: string }): string => `${edge.from}\n${edge.to}`;
export const fieldKey = (field: { dataset: string; field: string }): string =>
  `${field.dataset}\n${field.field}`;

/** What people call a node. */
export function titleOf(node: Node): string {
  if (node.type === "RUN") return node.job ? node.job.slice(node.job.lastIndexOf(":") + 1) : node.id.slice(4);
  return node.name ?? node.id;
}

/** What a card leads to: a version of a dataset to the dataset, a group to nothing. */
export function subjectOf(node: Node | undefined): string {
  if (!node || node.type === "GROUP") return "";
  return node.type === "DATASET_VERSION" ? (node.dataset ?? "") : node.id;
}

export function neighbours(edges: Edge[]): { up: Map<string, string[]>; down: Map<string, string[]> } {
  const up = new Map<string, string[]>();
  const down = new Map<string, string[]>();
  const put = (map: Map<string, string[]>, key: string, value: string) => {
    const have = map.get(key);
    if (have) have.push(value);
    else map.set(key, [value]);
  };
  for (const edge of edges) {
    put(down, edge.from, edge.to);
    put(up, edge.to, edge.from);
  }
  return { up, down };
}
