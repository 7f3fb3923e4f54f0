// lineage/bridge: a graph and what to hide of it -> the rest, joined across what is hidden, so that no way is lost.
import { type Drawn, type Edge, edgeKey, type Node, neighbours } from "./picture.ts";

/** What people hide: a namespace, a kind, or names that hold a text. */
export type Hiding = { kind: "ns" | "type" | "name"; value: string };

export function readHiding(text: string): Hiding | null {
  const at = text.indexOf(":");
  const kind = text.slice(0, at);
  const value = text.slice(at + 1);
  return value && (kind === "ns" || kind === "type" || kind === "name") ? { kind, value } : null;
}

export function hides(hiding: Hiding[], node: Node): boolean {
  return hiding.some(({ kind, value }) => {
    if (kind === "ns") return node.namespace === value;
    if (kind === "type") return node.type.toLowerCase() === value;
    return (node.name ?? node.id).toLowerCase().includes(value.toLowerCase());
  });
}

/** The graph without what is hidden; its start stays, so that something always does. */
export function bridge(drawn: Drawn, hiding: Hiding[]): Drawn {
  if (!hiding.length) return drawn;
  const kept = new Map([...drawn.nodes].filter(([id, node]) => id === drawn.start || !hides(hiding, node)));
  if (kept.size === drawn.nodes.size) return drawn;
  const { down } = neighbours(drawn.edges);
  const edges = new Map<string, Edge>();
  for (const edge of drawn.edges)
    if (kept.has(edge.from) && kept.has(edge.to)) edges.set(edgeKey(edge), edge);
  for (const from of kept.keys()) {
    // breadth first through what is hidden: the shortest way counts what lies between
    const seen = new Set<string>();
    let front = (down.get(from) ?? []).filter((id) => !kept.has(id));
    for (let between = 1; front.length; between++) {
      const next: string[] = [];
      for (const id of front) {
        if (seen.has(id)) continue;
        seen.add(id);
        for (const to of down.get(id) ?? []) {
          if (!kept.has(to)) next.push(to);
          else if (to !== from && !edges.has(edgeKey({ from, to })))
            edges.set(edgeKey({ from, to }), { from, to, hidden: between });
        }
      }
      front = next;
    }
  }
  const columns = drawn.columns.filter((each) => kept.has(each.from.dataset) && kept.has(each.to.dataset));
  return { ...drawn, nodes: kept, edges: [...edges.values()], columns };
}
