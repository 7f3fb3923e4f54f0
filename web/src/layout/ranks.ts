// layout/ranks: arcs -> which close cycles, and the column of each node: right of all it comes from.
import { type Arc, type Net, slices } from "./net.ts";

export interface Ranked {
  column: Int32Array;
  /** For each arc whether it runs against the others. */
  back: Uint8Array;
}

const NONE = -0x40000000;

export function rankNodes(net: Net, kept: Int32Array | null): Ranked {
  const back = cycleArcs(net, kept);
  const forward = net.arcs.filter((_, at) => !back[at]);
  return {
    column: kept ? keepColumns(net.boxes.length, forward, kept) : longestPaths(net.boxes.length, forward),
    back,
  };
}

/** No column was kept here. */
export const isFree = (column: number): boolean => column === NONE;
export const freeColumns = (count: number): Int32Array => new Int32Array(count).fill(NONE);

/**
 * The arcs that close a cycle, found depth first. What was drawn further left begins, so that a picture
 * which grows breaks its cycles where it did before.
 */
function cycleArcs(net: Net, kept: Int32Array | null): Uint8Array {
  const count = net.boxes.length;
  const arcs = net.arcs;
  const back = new Uint8Array(arcs.length);
  const incoming = new Int32Array(count);
  for (const arc of arcs) incoming[arc.to]!++;
  const starts = new Int32Array(count + 1); // arcs are sorted by where they begin
  for (const arc of arcs) starts[arc.from + 1]!++;
  for (let node = 0; node < count; node++) starts[node + 1]! += starts[node]!;
  const left = (node: number) => (kept && !isFree(kept[node]!) ? kept[node]! : 0x40000000);
  const roots = Array.from({ length: count }, (_, node) => node).sort(
    (a, b) => left(a) - left(b) || Math.sign(incoming[a]!) - Math.sign(incoming[b]!) || a - b,
  );
  const state = new Uint8Array(count); // 1: on the way, 2: done
  const next = starts.slice(0, count);
  for (const root of roots) {
    if (state[root]) continue;
    const path = [root];
    state[root] = 1;
    while (path.length) {
      const node = path[path.length - 1]!;
      if (next[node]! < starts[node + 1]!) {
        const at = next[node]!++;
        const to = arcs[at]!.to;
        if (state[to] === 1) back[at] = 1;
        else if (state[to] === 0) {
          state[to] = 1;
          path.push(to);
        }
      } else {
        state[node] = 2;
        path.pop();
      }
    }
  }
  return back;
}

/** Nodes in an order in which every arc leads onwards. */
function sorted(
  count: number,
  arcs: Arc[],
): { order: Int32Array; out: ReturnType<typeof slices>; into: ReturnType<typeof slices> } {
  const froms = arcs.map((arc) => arc.from);
  const tos = arcs.map((arc) => arc.to);
  const out = slices(count, froms, tos);
  const into = slices(count, tos, froms);
  const waiting = new Int32Array(count);
  for (const to of tos) waiting[to]!++;
  const order = new Int32Array(count);
  let filled = 0;
  for (let node = 0; node < count; node++) if (!waiting[node]) order[filled++] = node;
  for (let head = 0; head < filled; head++) {
    const node = order[head]!;
    for (let at = out.starts[node]!; at < out.starts[node + 1]!; at++)
      if (--waiting[out.items[at]!]! === 0) order[filled++] = out.items[at]!;
  }
  return { order, out, into };
}

function longestPaths(count: number, arcs: Arc[]): Int32Array {
  const { order, out, into } = sorted(count, arcs);
  const column = new Int32Array(count);
  for (const node of order)
    for (let at = out.starts[node]!; at < out.starts[node + 1]!; at++) {
      const to = out.items[at]!;
      if (column[to]! < column[node]! + 1) column[to] = column[node]! + 1;
    }
  // what comes from nothing stands next to what reads it, not at the far left
  for (let head = count - 1; head >= 0; head--) {
    const node = order[head]!;
    if (into.starts[node] !== into.starts[node + 1]) continue;
    let nearest = 0x40000000;
    for (let at = out.starts[node]!; at < out.starts[node + 1]!; at++)
      nearest = Math.min(nearest, column[out.items[at]!]!);
    if (nearest < 0x40000000) column[node] = nearest - 1;
  }
  return column;
}

/**
 * Kept columns are lower bounds: a node moves right only where an edge leaves no other way, and never left.
 * What is new stands right of what it comes from, else left of what it goes to.
 */
function keepColumns(count: number, arcs: Arc[], kept: Int32Array): Int32Array {
  const { order, out, into } = sorted(count, arcs);
  const column = kept.slice();
  for (const node of order)
    for (let at = into.starts[node]!; at < into.starts[node + 1]!; at++) {
      const from = column[into.items[at]!]!;
      if (!isFree(from) && column[node]! < from + 1) column[node] = from + 1;
    }
  for (let head = count - 1; head >= 0; head--) {
    const node = order[head]!;
    if (!isFree(column[node]!)) continue;
    let nearest = 0x40000000;
    for (let at = out.starts[node]!; at < out.starts[node + 1]!; at++) {
      const to = column[out.items[at]!]!;
      if (!isFree(to)) nearest = Math.min(nearest, to);
    }
    if (nearest < 0x40000000) column[node] = nearest - 1;
  }
  for (const node of order) {
    if (!isFree(column[node]!)) continue;
    let most = -1;
    for (let at = into.starts[node]!; at < into.starts[node + 1]!; at++)
      most = Math.max(most, column[into.items[at]!]!);
    column[node] = most + 1;
  }
  return column;
}
