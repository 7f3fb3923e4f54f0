// graphs: a size and a seed -> a graph that looks like lineage: layers, about 1.5 edges a node, some that skip layers.
import type { Box, Link } from "../src/layout/shapes.ts";

export function lineageLike(nodes: number, seed = 1): { boxes: Box[]; links: Link[] } {
  let state = seed;
  const chance = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
  const depth = Math.max(6, Math.round(nodes ** 0.42));
  const layers: number[][] = Array.from({ length: depth }, () => []);
  const within: number[] = [];
  for (let node = 0; node < nodes; node++) {
    const rank = node < depth ? node : Math.floor(chance() * depth);
    within[node] = layers[rank]!.length;
    layers[rank]!.push(node);
  }
  const pairs = new Map<string, [number, number]>();
  for (let rank = 1; rank < depth; rank++)
    for (const node of layers[rank]!) {
      const many = chance() < 0.55 ? 1 : chance() < 0.7 ? 2 : 3;
      for (let each = 0; each < many; each++) {
        const from = layers[chance() < 0.9 ? rank - 1 : Math.max(0, rank - 1 - Math.floor(chance() * 3))]!;
        const near = within[node]! / layers[rank]!.length + (chance() - 0.5) * 0.15;
        const source = from[Math.min(from.length - 1, Math.max(0, Math.floor(near * from.length)))]!;
        pairs.set(`${source},${node}`, [source, node]);
      }
    }
  const shuffled = <T>(items: T[]): T[] => {
    for (let at = items.length - 1; at > 0; at--) {
      const other = Math.floor(chance() * (at + 1));
      [items[at], items[other]] = [items[other]!, items[at]!];
    }
    return items;
  };
  // names that do not tell the order in which the graph was made
  const name = shuffled(Array.from({ length: nodes }, (_, at) => at));
  return {
    boxes: name.map((each) => ({ id: `n${each}`, width: 220, height: 44 })),
    links: shuffled([...pairs.values()]).map(([a, b]) => ({ from: `n${name[a]}`, to: `n${name[b]}` })),
  };
}
