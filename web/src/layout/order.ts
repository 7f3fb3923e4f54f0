// layout/order: columns of nodes, and arcs between them -> who stands above whom, with few crossings.
//
// Long arcs pass every column between by a dummy. From a depth-first order, sweeps sort each column by where its
// neighbours stand, and neighbours swap places where that helps; the best order seen is kept.
import { type Slices, slices } from "./net.ts";

export interface Layered {
  /** Nodes first, then dummies. */
  count: number;
  nodes: number;
  column: Int32Array;
  layers: Int32Array[];
  up: Slices;
  down: Slices;
  crossings: number;
}

const EFFORT = 4_000_000;

export function layer(
  nodes: number,
  columns: Int32Array,
  steps: { from: number; to: number }[],
  extra: number[],
  effort = EFFORT,
): Layered {
  const count = nodes + extra.length;
  const column = new Int32Array(count);
  column.set(columns.subarray(0, nodes));
  extra.forEach((rank, at) => {
    column[nodes + at] = rank;
  });
  let width = 0;
  for (const rank of column) width = Math.max(width, rank + 1);
  const froms = new Int32Array(steps.length);
  const tos = new Int32Array(steps.length);
  steps.forEach((step, at) => {
    froms[at] = step.from;
    tos[at] = step.to;
  });
  const down = slices(count, froms, tos);
  const up = slices(count, tos, froms);
  const sorter = new Sorter(count, column, width, up, down);
  sorter.begin();
  sorter.improve(effort);
  return { count, nodes, column, layers: sorter.layers, up, down, crossings: sorter.best };
}

class Sorter {
  layers: Int32Array[];
  best = Number.POSITIVE_INFINITY;
  private readonly place: Int32Array;
  private readonly key: Float64Array;
  private readonly tree: Int32Array;
  private work = 0;

  constructor(
    private readonly count: number,
    private readonly column: Int32Array,
    width: number,
    private readonly up: Slices,
    private readonly down: Slices,
  ) {
    const sizes = new Int32Array(width);
    for (const rank of column) sizes[rank]!++;
    this.layers = Array.from(sizes, (size) => new Int32Array(size));
    this.place = new Int32Array(count);
    this.key = new Float64Array(count);
    this.tree = new Int32Array(Math.max(0, ...sizes) + 2);
  }

  /** What hangs together stands together: depth first along arcs, either way. */
  begin(): void {
    const seen = new Uint8Array(this.count);
    const filled = new Int32Array(this.layers.length);
    const roots = Array.from({ length: this.count }, (_, at) => at).sort(
      (a, b) => this.column[a]! - this.column[b]! || a - b,
    );
    for (const root of roots) {
      if (seen[root]) continue;
      const path = [root];
      seen[root] = 1;
      while (path.length) {
        const node = path.pop()!;
        const rank = this.column[node]!;
        this.place[node] = filled[rank]!;
        this.layers[rank]![filled[rank]!++] = node;
        for (const side of [this.down, this.up])
          for (let at = side.starts[node]!; at < side.starts[node + 1]!; at++) {
            const other = side.items[at]!;
            if (seen[other]) continue;
            seen[other] = 1;
            path.push(other);
          }
      }
    }
  }

  improve(effort: number): void {
    let kept = this.copy();
    this.best = this.crossings();
    let stale = 0;
    for (let sweep = 0; sweep < 24 && stale < 6 && this.work < effort && this.best > 0; sweep++) {
      this.sweep(sweep % 2 === 0, sweep % 4 < 2);
      for (let turn = 0; turn < 4 && this.work < effort; turn++) if (!this.exchange()) break;
      const now = this.crossings();
      if (now < this.best) {
        this.best = now;
        kept = this.copy();
        stale = 0;
      } else stale++;
    }
    this.layers = kept;
    for (const nodes of kept)
      nodes.forEach((node, at) => {
        this.place[node] = at;
      });
  }

  private copy(): Int32Array[] {
    return this.layers.map((nodes) => nodes.slice());
  }

  private sweep(rightwards: boolean, first: boolean): void {
    const { key, place } = this;
    const side = rightwards ? this.up : this.down;
    for (let step = 0; step < this.layers.length; step++) {
      const nodes = this.layers[rightwards ? step : this.layers.length - 1 - step]!;
      for (const node of nodes) {
        const from = side.starts[node]!;
        const to = side.starts[node + 1]!;
        this.work += to - from + 1;
        let sum = 0;
        for (let at = from; at < to; at++) {
          const other = side.items[at]!;
          sum += (place[other]! + 0.5) / this.layers[this.column[other]!]!.length;
        }
        key[node] = from === to ? (place[node]! + 0.5) / nodes.length : sum / (to - from);
      }
      nodes.sort((a, b) => key[a]! - key[b]! || (first ? place[a]! - place[b]! : place[b]! - place[a]!));
      nodes.forEach((node, at) => {
        place[node] = at;
      });
    }
  }

  private exchange(): number {
    let swaps = 0;
    for (const nodes of this.layers)
      for (let at = 0; at + 1 < nodes.length; at++) {
        const upper = nodes[at]!;
        const lower = nodes[at + 1]!;
        if (this.gain(this.up, upper, lower) + this.gain(this.down, upper, lower) <= 0) continue;
        nodes[at] = lower;
        nodes[at + 1] = upper;
        this.place[lower] = at;
        this.place[upper] = at + 1;
        swaps++;
      }
    return swaps;
  }

  /** How many crossings fewer there are if two neighbours swap, on one side. */
  private gain(side: Slices, upper: number, lower: number): number {
    const [a, b] = [side.starts[upper]!, side.starts[upper + 1]!];
    const [c, d] = [side.starts[lower]!, side.starts[lower + 1]!];
    if (a === b || c === d) return 0;
    this.work += 2;
    if ((b - a) * (d - c) > 4096) return this.hubGain(side, a, b, c, d);
    this.work += (b - a) * (d - c);
    let sum = 0;
    for (let i = a; i < b; i++) {
      const here = this.place[side.items[i]!]!;
      for (let j = c; j < d; j++) {
        const there = this.place[side.items[j]!]!;
        if (here > there) sum++;
        else if (here < there) sum--;
      }
    }
    return sum;
  }

  private hubGain(side: Slices, a: number, b: number, c: number, d: number): number {
    const ours = side.items
      .slice(a, b)
      .map((node) => this.place[node]!)
      .sort();
    const theirs = side.items
      .slice(c, d)
      .map((node) => this.place[node]!)
      .sort();
    this.work += (ours.length + theirs.length) * 4;
    let sum = 0;
    let below = 0;
    let until = 0;
    for (const here of ours) {
      while (below < theirs.length && theirs[below]! < here) below++;
      while (until < theirs.length && theirs[until]! <= here) until++;
      sum += below - (theirs.length - until);
    }
    return sum;
  }

  private crossings(): number {
    let sum = 0;
    for (let rank = 0; rank + 1 < this.layers.length; rank++) sum += this.between(rank);
    return sum;
  }

  /** Crossings between a column and the next, by a Fenwick tree over places. */
  private between(rank: number): number {
    const { tree, down, place } = this;
    const size = this.layers[rank + 1]!.length;
    tree.fill(0, 0, size + 1);
    let sum = 0;
    let total = 0;
    for (const node of this.layers[rank]!) {
      const from = down.starts[node]!;
      const to = down.starts[node + 1]!;
      this.work += to - from;
      for (let at = from; at < to; at++) {
        let before = 0;
        for (let i = place[down.items[at]!]! + 1; i > 0; i -= i & -i) before += tree[i]!;
        sum += total - before;
      }
      for (let at = from; at < to; at++) {
        for (let i = place[down.items[at]!]! + 1; i <= size; i += i & -i) tree[i]!++;
        total++;
      }
    }
    return sum;
  }
}
