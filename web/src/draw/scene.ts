// draw/scene: cards, lines and their picture -> flat geometry that canvas, SVG and hit tests read.

import type { Picture, Place } from "../layout/shapes.ts";
import type { Deck, Line } from "../lineage/cards.ts";
import { CARD_WIDTH } from "../lineage/cards.ts";
import type { Bounds } from "./camera.ts";

export interface Stroke {
  line: Line;
  /** x and y of each point from end to end. */
  points: Float64Array;
  bounds: Bounds;
  back: boolean;
}

export interface Scene {
  places: Map<string, Place>;
  deck: Deck;
  strokes: Stroke[];
  bounds: Bounds;
}

export function makeScene(deck: Deck, picture: Picture, bounds: Bounds): Scene {
  const strokes: Stroke[] = [];
  const beside = sideBySide(deck.lines);
  deck.lines.forEach((line, at) => {
    const from = picture.places.get(line.link.from);
    const to = picture.places.get(line.link.to);
    if (!from || !to) return;
    const back = to.x <= from.x;
    const stones = back ? [] : (picture.routes.get(at) ?? []);
    const points = new Float64Array(4 + stones.length * 4);
    let filled = 0;
    const put = (x: number, y: number) => {
      points[filled++] = x;
      points[filled++] = y;
    };
    put(from.x + CARD_WIDTH, from.y + (line.link.fromPort ?? 0));
    for (const stone of stones) {
      put(stone.x, stone.y + beside[at]!); // straight past the column
      put(stone.x + CARD_WIDTH, stone.y + beside[at]!);
    }
    put(to.x, to.y + (line.link.toPort ?? 0));
    strokes.push({ line, points, bounds: around(points, back ? 120 : 0), back });
  });
  return { places: picture.places, deck, strokes, bounds };
}

/** Lines between the same two cards share a lane: how far each runs beside its middle, so that they can be told apart. */
function sideBySide(lines: Line[]): Float64Array {
  const lanes = new Map<string, number[]>();
  lines.forEach(({ link }, at) => {
    const key = `${link.from}\n${link.to}`;
    const lane = lanes.get(key);
    if (lane) lane.push(at);
    else lanes.set(key, [at]);
  });
  const found = new Float64Array(lines.length);
  for (const lane of lanes.values()) {
    const apart = Math.min(4, 24 / lane.length);
    // in the order of their ports, or they would cross on the way in and again on the way out
    lane.sort((a, b) => (lines[a]!.link.fromPort ?? 0) - (lines[b]!.link.fromPort ?? 0) || a - b);
    lane.forEach((at, index) => {
      found[at] = (index - (lane.length - 1) / 2) * apart;
    });
  }
  return found;
}

function around(points: Float64Array, margin: number): Bounds {
  let [left, top, right, bottom] = [points[0]!, points[1]!, points[0]!, points[1]!];
  for (let at = 2; at < points.length; at += 2) {
    left = Math.min(left, points[at]!);
    right = Math.max(right, points[at]!);
    top = Math.min(top, points[at + 1]!);
    bottom = Math.max(bottom, points[at + 1]!);
  }
  return { left: left - margin, top: top - margin, right: right + margin, bottom: bottom + margin };
}

export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void;
}

/** A line as one would draw it: level out of a card and into the next; against the flow it goes around. */
export function draw(pen: Pen, { points, back }: Stroke): void {
  pen.moveTo(points[0]!, points[1]!);
  if (back) {
    const [x0, y0, x1, y1] = [points[0]!, points[1]!, points[2]!, points[3]!];
    pen.bezierCurveTo(x0 + 110, y0 + 90, x1 - 110, y1 + 90, x1, y1);
    return;
  }
  for (let at = 2; at < points.length; at += 2) {
    const [x0, y0, x1, y1] = [points[at - 2]!, points[at - 1]!, points[at]!, points[at + 1]!];
    if (y0 === y1) pen.lineTo(x1, y1);
    else {
      const bend = (x1 - x0) / 2;
      pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    }
  }
}

export const meets = (a: Bounds, b: Bounds): boolean =>
  a.left <= b.right && a.right >= b.left && a.top <= b.bottom && a.bottom >= b.top;

/** Where on a line one can write: its middle. */
export function middleOf({ points }: Stroke): { x: number; y: number } {
  const at = Math.floor(points.length / 4) * 2;
  return { x: (points[at - 2]! + points[at]!) / 2, y: (points[at - 1]! + points[at + 1]!) / 2 };
}

/** The stroke nearest to a point, within a distance. */
export function strokeAt(scene: Scene, x: number, y: number, within: number): Stroke | null {
  let best: Stroke | null = null;
  let nearest = within;
  for (const stroke of scene.strokes) {
    const box = stroke.bounds;
    if (x < box.left - within || x > box.right + within || y < box.top - within || y > box.bottom + within)
      continue;
    const distance = distanceTo(stroke, x, y);
    if (distance < nearest) {
      nearest = distance;
      best = stroke;
    }
  }
  return best;
}

function distanceTo({ points, back }: Stroke, x: number, y: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let at = 2; at < points.length; at += 2) {
    const [x0, y0, x1, y1] = [points[at - 2]!, points[at - 1]!, points[at]!, points[at + 1]!];
    for (let step = 0; step <= 16; step++) {
      const t = step / 16;
      const u = 1 - t;
      const bend = back ? 110 : (x1 - x0) / 2;
      const sag = back ? 90 : 0;
      const px = u * u * u * x0 + 3 * u * u * t * (x0 + bend) + 3 * u * t * t * (x1 - bend) + t * t * t * x1;
      const py = u * u * u * y0 + 3 * u * u * t * (y0 + sag) + 3 * u * t * t * (y1 + sag) + t * t * t * y1;
      best = Math.min(best, Math.hypot(px - x, py - y));
    }
  }
  return best;
}
