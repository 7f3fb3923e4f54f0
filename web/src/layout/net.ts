// layout/net: boxes and links by name -> numbers, in an order that does not depend on how they came.
import type { Box, Link } from "./shapes.ts";

export interface Arc {
  from: number;
  to: number;
  fromPort: number;
  toPort: number;
  /** Which link it was. */
  link: number;
}

export interface Net {
  boxes: Box[];
  index: Map<string, number>;
  arcs: Arc[];
}

export function makeNet(boxes: Box[], links: Link[]): Net {
  const sorted = [...boxes].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const index = new Map(sorted.map((box, at) => [box.id, at]));
  const arcs: Arc[] = [];
  links.forEach((link, at) => {
    const from = index.get(link.from);
    const to = index.get(link.to);
    if (from === undefined || to === undefined || from === to) return;
    const fromPort = link.fromPort ?? sorted[from]!.height / 2;
    const toPort = link.toPort ?? sorted[to]!.height / 2;
    arcs.push({ from, to, fromPort, toPort, link: at });
  });
  arcs.sort(
    (a, b) =>
      a.from - b.from || a.to - b.to || a.fromPort - b.fromPort || a.toPort - b.toPort || a.link - b.link,
  );
  return { boxes: sorted, index, arcs };
}

/** Neighbours of each node as slices of one array: `items[starts[n]]` to `items[starts[n + 1] - 1]`. */
export interface Slices {
  starts: Int32Array;
  items: Int32Array;
}

export function slices(count: number, sources: ArrayLike<number>, targets: ArrayLike<number>): Slices {
  const starts = new Int32Array(count + 1);
  for (let at = 0; at < sources.length; at++) starts[sources[at]! + 1]!++;
  for (let node = 0; node < count; node++) starts[node + 1]! += starts[node]!;
  const items = new Int32Array(sources.length);
  const next = starts.slice();
  for (let at = 0; at < sources.length; at++) items[next[sources[at]!]!++] = targets[at]!;
  return { starts, items };
}
