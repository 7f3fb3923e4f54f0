// Whatever the graph: no box over another, edges left to right, the same picture each time, and what stands stays.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrange } from "../src/layout/arrange.ts";
import type { Box, Link, Order, Picture } from "../src/layout/shapes.ts";
import { COLUMN_STEP, GAP } from "../src/layout/shapes.ts";
import { nearestFree, spread } from "../src/layout/spread.ts";
import { lineageLike } from "./graphs.ts";

const RUNS = { numRuns: Number(process.env.RUNS ?? 150) };

const graph = (acyclic: boolean) =>
  fc
    .record({
      heights: fc.array(fc.integer({ min: 30, max: 260 }), { minLength: 1, maxLength: 24 }),
      pairs: fc.array(fc.tuple(fc.nat(23), fc.nat(23), fc.option(fc.nat(200)), fc.option(fc.nat(200))), {
        maxLength: 50,
      }),
    })
    .map(({ heights, pairs }): { boxes: Box[]; links: Link[] } => {
      const boxes = heights.map((height, at) => ({ id: `n${at}`, width: 220, height }));
      const links = pairs
        .map(([a, b, out, into]) => ({ a: a % boxes.length, b: b % boxes.length, out, into }))
        .filter(({ a, b }) => (acyclic ? a < b : true))
        .map(({ a, b, out, into }): Link => {
          const link: Link = { from: `n${a}`, to: `n${b}` };
          if (out !== null) link.fromPort = Math.min(out, heights[a]!);
          if (into !== null) link.toPort = Math.min(into, heights[b]!);
          return link;
        });
      return { boxes, links };
    });

function overlaps(boxes: Box[], picture: Picture): string[] {
  const found: string[] = [];
  const placed = boxes.map((box) => ({ ...box, ...picture.places.get(box.id)! }));
  placed.sort((a, b) => a.x - b.x || a.y - b.y);
  for (let at = 0; at + 1 < placed.length; at++) {
    const [upper, lower] = [placed[at]!, placed[at + 1]!];
    if (upper.x === lower.x && lower.y < upper.y + upper.height + GAP)
      found.push(`${upper.id} over ${lower.id}`);
  }
  return found;
}

function leftwards(links: Link[], picture: Picture): Link[] {
  return links.filter((link, at) => {
    if (picture.back.has(at) || link.from === link.to) return false;
    return picture.places.get(link.from)!.column >= picture.places.get(link.to)!.column;
  });
}

const places = (picture: Picture) => Object.fromEntries([...picture.places].sort());

describe("a picture made anew", () => {
  test("has no box over another, and edges that lead to the right but for those that close a cycle", () => {
    fc.assert(
      fc.property(graph(false), ({ boxes, links }) => {
        const picture = arrange({ boxes, links });
        expect([...picture.places.keys()].sort()).toEqual(boxes.map((box) => box.id).sort());
        expect(overlaps(boxes, picture)).toEqual([]);
        expect(leftwards(links, picture)).toEqual([]);
        for (const place of picture.places.values()) expect(place.x).toBe(place.column * COLUMN_STEP);
      }),
      RUNS,
    );
  });

  test("turns no edge of a graph without cycles", () => {
    fc.assert(
      fc.property(graph(true), ({ boxes, links }) => {
        expect(arrange({ boxes, links }).back.size).toBe(0);
      }),
      RUNS,
    );
  });

  test("is the same in whatever order boxes and links come", () => {
    fc.assert(
      fc.property(
        graph(false),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        ({ boxes, links }, chance) => {
          const shuffled = <T>(items: T[]): T[] =>
            items
              .map((item) => ({ item, key: chance.next().value as number }))
              .sort((a, b) => a.key - b.key)
              .map(({ item }) => item);
          const once = places(arrange({ boxes, links }));
          expect(places(arrange({ boxes, links }))).toEqual(once);
          expect(places(arrange({ boxes: shuffled(boxes), links: shuffled(links) }))).toEqual(once);
        },
      ),
      RUNS,
    );
  });

  test("has its anchor at the origin", () => {
    fc.assert(
      fc.property(graph(false), ({ boxes, links }) => {
        expect(arrange({ boxes, links, anchor: "n0" }).places.get("n0")).toEqual({ column: 0, x: 0, y: 0 });
      }),
      RUNS,
    );
  });

  test("draws a line through a row of its own past the columns that it crosses", () => {
    const boxes = ["a", "b", "c"].map((id) => ({ id, width: 220, height: 60 }));
    const links = [
      { from: "a", to: "b" },
      { from: "b", to: "c" },
      { from: "a", to: "c" },
    ];
    const picture = arrange({ boxes, links });
    const [passing] = picture.routes.get(2)!;
    const between = picture.places.get("b")!;
    expect(passing!.x).toBe(between.x);
    expect(passing!.y < between.y || passing!.y > between.y + 60).toBe(true);
  });

  test("puts a lone column line level with both of its ports", () => {
    const boxes = [
      { id: "a", width: 220, height: 300 },
      { id: "b", width: 220, height: 60 },
    ];
    const picture = arrange({ boxes, links: [{ from: "a", to: "b", fromPort: 280, toPort: 10 }] });
    expect(picture.places.get("a")!.y + 280).toBeCloseTo(picture.places.get("b")!.y + 10, 0);
  });
});

describe("a picture that grows", () => {
  const grown = (acyclic: boolean) => fc.tuple(graph(acyclic), fc.nat({ max: 100 }));
  const part = ({ boxes, links }: { boxes: Box[]; links: Link[] }, share: number): Order => {
    // what was drawn before: any part of it, in the order of the graph
    const drawn = boxes.filter((_, at) => (at * 37 + share) % 100 < 55);
    const ids = new Set(drawn.map((box) => box.id));
    return { boxes: drawn, links: links.filter((link) => ids.has(link.from) && ids.has(link.to)) };
  };

  test("has no overlaps and no edge to the left, and is the same each time", () => {
    fc.assert(
      fc.property(grown(false), ([all, share]) => {
        const before = arrange(part(all, share));
        const after = arrange({ ...all, kept: before.places });
        expect(overlaps(all.boxes, after)).toEqual([]);
        expect(leftwards(all.links, after)).toEqual([]);
        expect(places(arrange({ ...all, kept: before.places }))).toEqual(places(after));
      }),
      RUNS,
    );
  });

  test("moves nothing that an edge does not force to the right", () => {
    fc.assert(
      fc.property(grown(true), ([all, share]) => {
        const before = arrange(part(all, share));
        const after = arrange({ ...all, kept: before.places });
        // a box may move only if a way leads to it that is longer than the columns it had
        const reach = new Map([...before.places].map(([id, place]) => [id, place.column]));
        for (const box of all.boxes) {
          const need = Math.max(
            Number.NEGATIVE_INFINITY,
            ...all.links
              .filter((link) => link.to === box.id && reach.has(link.from))
              .map((link) => reach.get(link.from)! + 1),
          );
          const had = before.places.get(box.id)?.column;
          if (had !== undefined) reach.set(box.id, Math.max(had, need));
          else if (need > Number.NEGATIVE_INFINITY) reach.set(box.id, need);
        }
        for (const [id, was] of before.places) {
          const now = after.places.get(id)!;
          if (reach.get(id) === was.column) expect(now).toEqual(was);
          else expect(now.column).toBeGreaterThan(was.column);
        }
      }),
      RUNS,
    );
  });

  test("keeps every place when it shrinks again", () => {
    fc.assert(
      fc.property(grown(true), ([all, share]) => {
        const whole = arrange(all);
        const less = part(all, share);
        const after = arrange({ ...less, kept: whole.places });
        for (const box of less.boxes) expect(after.places.get(box.id)).toEqual(whole.places.get(box.id));
      }),
      RUNS,
    );
  });

  test("pushes only those below a box whose columns were opened", () => {
    const boxes = ["a", "b", "c"].map((id) => ({ id, width: 220, height: 40 }));
    const before = arrange({ boxes, links: [], anchor: "a" });
    const opened = boxes.map((box) => (box.id === "b" ? { ...box, height: 200 } : box));
    const after = arrange({ boxes: opened, links: [], kept: before.places });
    expect(after.places.get("a")).toEqual(before.places.get("a"));
    expect(after.places.get("b")).toEqual(before.places.get("b"));
    expect(after.places.get("c")!.y).toBe(before.places.get("b")!.y + 200 + GAP);
  });
});

describe("large graphs", () => {
  test.each([500, 2000])(
    "%i nodes have no overlaps and fewer crossings than the order they came in",
    (nodes) => {
      const { boxes, links } = lineageLike(nodes);
      const picture = arrange({ boxes, links });
      expect(overlaps(boxes, picture)).toEqual([]);
      expect(picture.crossings).toBeLessThan(arrange({ boxes, links, effort: 0 }).crossings);
    },
  );

  test("a hub of 3,000 readers is drawn", () => {
    const boxes = Array.from({ length: 3001 }, (_, at) => ({ id: `n${at}`, width: 220, height: 44 }));
    const links = boxes.slice(1).map((box) => ({ from: "n0", to: box.id }));
    expect(overlaps(boxes, arrange({ boxes, links }))).toEqual([]);
  });
});

describe("spread", () => {
  test("leaves alone what has room, and keeps order and room otherwise", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -500, max: 500 }), fc.integer({ min: 0, max: 80 }))),
        (items) => {
          const wanted = items.map(([y]) => y);
          const room = items.slice(1).map(([, each]) => each);
          const found = spread(wanted, room);
          for (let at = 0; at + 1 < wanted.length; at++)
            expect(found[at + 1]! - found[at]!).toBeGreaterThanOrEqual(room[at]! - 1e-6);
          if (wanted.every((y, at) => at === 0 || y - wanted[at - 1]! >= room[at - 1]!))
            expect([...found]).toEqual(wanted);
        },
      ),
      RUNS,
    );
  });

  test("nearestFree finds the nearest free place", () => {
    const taken = [
      { top: 0, bottom: 40 },
      { top: 100, bottom: 140 },
    ];
    expect(nearestFree(taken, 10, 20, 10)).toBe(-30);
    expect(nearestFree(taken, 60, 20, 10)).toBe(60);
    expect(nearestFree(taken, 90, 40, 10)).toBe(50);
    expect(nearestFree(taken, 110, 60, 10)).toBe(150);
  });
});
