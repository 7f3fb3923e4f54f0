// layout/settle: columns, and where boxes stood before -> places: what was there stays, what is new finds room.
import type { Net } from "./net.ts";
import { COLUMN_STEP, GAP, type Place } from "./shapes.ts";
import { nearestFree, spread } from "./spread.ts";

export function settle(
  net: Net,
  column: Int32Array,
  kept: Map<string, Place>,
): { places: Map<string, Place> } {
  const count = net.boxes.length;
  const top = new Float64Array(count).fill(Number.NaN);
  const layers = byColumn(column);
  for (const nodes of layers.values()) keepOld(net, column, nodes, kept, top);
  // new boxes next to what stands already, then those next to them
  let waiting = Array.from({ length: count }, (_, at) => at).filter((node) => Number.isNaN(top[node]!));
  while (waiting.length) {
    const wanted = wishes(net, top, new Set(waiting));
    const ready = waiting.filter((node) => wanted.has(node));
    const now = ready.length ? ready : waiting;
    for (const [rank, nodes] of byColumn(column, now)) place(net, layers.get(rank)!, nodes, wanted, top);
    waiting = waiting.filter((node) => Number.isNaN(top[node]!));
  }
  return {
    places: new Map(
      net.boxes.map((box, at) => [
        box.id,
        { column: column[at]!, x: column[at]! * COLUMN_STEP, y: top[at]! },
      ]),
    ),
  };
}

function byColumn(column: Int32Array, among?: number[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  const add = (node: number) => {
    const nodes = found.get(column[node]!);
    if (nodes) nodes.push(node);
    else found.set(column[node]!, [node]);
  };
  if (among) among.forEach(add);
  else for (let node = 0; node < column.length; node++) add(node);
  return found;
}

/** Those that stay in their column stay where they are; only boxes that grew push others, and no further than they must. */
function keepOld(
  net: Net,
  column: Int32Array,
  nodes: number[],
  kept: Map<string, Place>,
  top: Float64Array,
): void {
  const old = (node: number) => kept.get(net.boxes[node]!.id);
  const staying = nodes.filter((node) => old(node)?.column === column[node]);
  staying.sort((a, b) => old(a)!.y - old(b)!.y || a - b);
  const room = staying.slice(1).map((_, at) => net.boxes[staying[at]!]!.height + GAP);
  // boxes that grew may overlap: from the top on, the next one gives way
  let free = Number.NEGATIVE_INFINITY;
  staying.forEach((node, at) => {
    const y = Math.max(old(node)!.y, free);
    top[node] = y;
    free = y + (room[at] ?? 0);
  });
}

/** Where new boxes would like to be: beside the ports of their neighbours that stand. */
function wishes(net: Net, top: Float64Array, fresh: Set<number>): Map<number, number> {
  const sums = new Map<number, [number, number]>();
  const wish = (node: number, y: number) => {
    const have = sums.get(node) ?? [0, 0];
    sums.set(node, [have[0] + y, have[1] + 1]);
  };
  for (const arc of net.arcs) {
    if (fresh.has(arc.to) && !Number.isNaN(top[arc.from]!))
      wish(arc.to, top[arc.from]! + arc.fromPort - arc.toPort);
    if (fresh.has(arc.from) && !Number.isNaN(top[arc.to]!))
      wish(arc.from, top[arc.to]! + arc.toPort - arc.fromPort);
  }
  return new Map([...sums].map(([node, [sum, times]]) => [node, sum / times]));
}

function place(
  net: Net,
  column: number[],
  nodes: number[],
  wanted: Map<number, number>,
  top: Float64Array,
): void {
  const wish = (node: number) => wanted.get(node) ?? 0;
  const sorted = [...nodes].sort((a, b) => wish(a) - wish(b) || a - b);
  const room = sorted.slice(1).map((_, at) => net.boxes[sorted[at]!]!.height + GAP);
  const apart = spread(sorted.map(wish), room); // among themselves first, so that sisters stay side by side
  const taken = column
    .filter((node) => !Number.isNaN(top[node]!))
    .map((node) => ({ top: top[node]!, bottom: top[node]! + net.boxes[node]!.height }))
    .sort((a, b) => a.top - b.top);
  sorted.forEach((node, at) => {
    const height = net.boxes[node]!.height;
    const y = Math.round(nearestFree(taken, Math.round(apart[at]!), height, GAP));
    top[node] = y;
    let spot = taken.length;
    while (spot > 0 && taken[spot - 1]!.top > y) spot--;
    taken.splice(spot, 0, { top: y, bottom: y + height });
  });
}
