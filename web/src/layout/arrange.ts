// layout/arrange: boxes and links -> a picture, anew or grown out of the one before.
import { type Arc, makeNet, type Net } from "./net.ts";
import { type Layered, layer } from "./order.ts";
import { freeColumns, isFree, rankNodes } from "./ranks.ts";
import { settle } from "./settle.ts";
import { COLUMN_STEP, GAP, LANE, type Order, type Picture, type Point } from "./shapes.ts";
import { spread } from "./spread.ts";

export function arrange(order: Order): Picture {
  const net = makeNet(order.boxes, order.links);
  const kept = keptColumns(net, order);
  const { column, back } = rankNodes(net, kept);
  const turned = new Set(net.arcs.filter((_, at) => back[at]).map((arc) => arc.link));
  if (kept) return { ...settle(net, column, order.kept!), routes: new Map(), back: turned, crossings: 0 };
  const { places, routes, crossings } = fresh(
    net,
    column,
    net.arcs.filter((_, at) => !back[at]),
    order,
  );
  return { places, routes, back: turned, crossings };
}

function keptColumns(net: Net, order: Order): Int32Array | null {
  if (!order.kept?.size) return null;
  const columns = freeColumns(net.boxes.length);
  let any = false;
  for (const [id, place] of order.kept) {
    const at = net.index.get(id);
    if (at === undefined) continue;
    columns[at] = place.column;
    any = true;
  }
  return any && columns.some((column) => !isFree(column)) ? columns : null;
}

function fresh(net: Net, column: Int32Array, arcs: Arc[], order: Order): Omit<Picture, "back"> {
  const count = net.boxes.length;
  let least = 0;
  for (const each of column) least = Math.min(least, each);
  const columns = column.map((each) => each - least);
  const { steps, dummies, passed } = steppingStones(count, columns, arcs);
  const layered = layer(count, columns, steps, dummies, order.effort);
  const middle = placeMiddles(net, layered, steps, arcs);
  const anchor = order.anchor === undefined ? undefined : net.index.get(order.anchor);
  const [column0, y0] =
    anchor === undefined ? [0, 0] : [columns[anchor]!, middle[anchor]! - net.boxes[anchor]!.height / 2];
  const places = new Map(
    net.boxes.map((box, at) => {
      const rank = columns[at]! - column0;
      return [box.id, { column: rank, x: rank * COLUMN_STEP, y: whole(middle[at]! - box.height / 2 - y0) }];
    }),
  );
  const routes = new Map<number, Point[]>();
  for (const [link, stones] of passed)
    routes.set(
      link,
      stones.map((stone) => ({
        x: (layered.column[stone]! - column0) * COLUMN_STEP,
        y: middle[stone]! - y0,
      })),
    );
  return { places, routes, crossings: layered.crossings };
}

/** Rounded down, so that boxes of whole heights keep their distance; a hair above, for sums that end in .999. */
const whole = (y: number): number => Math.floor(y + 1e-6) + 0;

interface Step {
  from: number;
  to: number;
  fromPort: number | null;
  toPort: number | null;
}

/** Arcs as steps from one column to the next, over dummies; arcs between the same two boxes share theirs. */
function steppingStones(count: number, columns: Int32Array, arcs: Arc[]) {
  const steps: Step[] = [];
  const dummies: number[] = [];
  const passed = new Map<number, number[]>();
  let last: { from: number; to: number; stones: number[] } | null = null;
  for (const arc of arcs) {
    const again = last?.from === arc.from && last.to === arc.to;
    const stones: number[] = again ? last!.stones : [];
    if (!again) {
      for (let rank = columns[arc.from]! + 1; rank < columns[arc.to]!; rank++) {
        stones.push(count + dummies.length);
        dummies.push(rank);
      }
      last = { from: arc.from, to: arc.to, stones };
    }
    if (stones.length) passed.set(arc.link, stones);
    if (again && stones.length) continue;
    const way = [arc.from, ...stones, arc.to];
    for (let at = 0; at + 1 < way.length; at++)
      steps.push({
        from: way[at]!,
        to: way[at + 1]!,
        fromPort: at === 0 ? arc.fromPort : null,
        toPort: at + 2 === way.length ? arc.toPort : null,
      });
  }
  return { steps, dummies, passed };
}

/** Every node near the mean of its neighbours, column after column, left to right and back. */
function placeMiddles(net: Net, layered: Layered, steps: Step[], arcs: Arc[]): Float64Array {
  const { count, nodes, layers } = layered;
  const half = new Float64Array(count);
  net.boxes.forEach((box, at) => {
    half[at] = box.height / 2;
  });
  const room = layers.map((layer) => {
    const found = new Float64Array(Math.max(0, layer.length - 1));
    for (let at = 0; at + 1 < layer.length; at++) {
      const [a, b] = [layer[at]!, layer[at + 1]!];
      found[at] = half[a]! + half[b]! + (a < nodes && b < nodes ? GAP : a < nodes || b < nodes ? GAP : LANE);
    }
    return found;
  });
  const middle = new Float64Array(count);
  layers.forEach((layer, rank) => {
    let y = 0;
    layer.forEach((node, at) => {
      middle[node] = y;
      y += room[rank]![at] ?? 0;
    });
    for (const node of layer) middle[node]! -= y / 2;
  });
  // how far the line ends from the middle of each box, at either end
  const leave = (step: Step) => (step.fromPort === null ? 0 : step.fromPort - half[step.from]!);
  const enter = (step: Step) => (step.toPort === null ? 0 : step.toPort - half[step.to]!);
  const sum = new Float64Array(count);
  const degree = new Int32Array(count);
  const into: Step[][] = layers.map(() => []);
  for (const step of steps) into[layered.column[step.to]!]!.push(step);
  const passes = arcs.length > 20_000 ? 4 : 8;
  for (let pass = 0; pass < passes; pass++) {
    const rightwards = pass % 2 === 0;
    for (let turn = 0; turn < layers.length; turn++) {
      const rank = rightwards ? turn : layers.length - 1 - turn;
      const layer = layers[rank]!;
      for (const node of layer) {
        sum[node] = 0;
        degree[node] = 0;
      }
      for (const step of (rightwards ? into[rank] : into[rank + 1]) ?? []) {
        const lean = leave(step) - enter(step);
        const [node, other, shift] = rightwards ? [step.to, step.from, lean] : [step.from, step.to, -lean];
        sum[node]! += middle[other]! + shift;
        degree[node]!++;
      }
      const wanted = Float64Array.from(layer, (node) =>
        degree[node] ? sum[node]! / degree[node]! : middle[node]!,
      );
      const found = spread(wanted, room[rank]!);
      layer.forEach((node, at) => {
        middle[node] = found[at]!;
      });
    }
  }
  return middle;
}
