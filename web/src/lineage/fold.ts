// lineage/fold: a graph and namespaces to collapse -> each of them as one node, its edges joined.
import { type Drawn, type Edge, edgeKey, type Node } from "./picture.ts";

export const groupId = (namespace: string): string => `group:${namespace}`;

export function fold(drawn: Drawn, namespaces: string[]): Drawn {
  if (!namespaces.length) return drawn;
  const folded = new Set(namespaces);
  const into = new Map<string, string>();
  const nodes = new Map<string, Node>();
  for (const [id, node] of drawn.nodes) {
    // the start stays to be seen
    const group = id !== drawn.start && node.namespace !== undefined && folded.has(node.namespace);
    const target = group ? groupId(node.namespace!) : id;
    into.set(id, target);
    if (!group) {
      nodes.set(id, node);
      continue;
    }
    const known = nodes.get(target);
    const made: Node = known ?? {
      id: target,
      type: "GROUP",
      namespace: node.namespace!,
      name: node.namespace!,
      members: 0,
    };
    made.members = (made.members ?? 0) + 1;
    nodes.set(target, made);
  }
  const edges = new Map<string, Edge>();
  for (const edge of drawn.edges) {
    const moved = { ...edge, from: into.get(edge.from)!, to: into.get(edge.to)! };
    if (moved.from !== moved.to) edges.set(edgeKey(moved), moved);
  }
  const columns = drawn.columns.filter((each) => nodes.has(each.from.dataset) && nodes.has(each.to.dataset));
  return { ...drawn, nodes, edges: [...edges.values()], columns };
}
