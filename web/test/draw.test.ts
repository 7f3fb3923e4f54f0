// Drawing without a screen: the camera, the geometry of lines, what is hit, and an SVG that no name can break.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "../src/api/sse.ts";
import { boundsOf, fitCamera, revealCamera, seen, zoomCamera } from "../src/draw/camera.ts";
import type { Emphasis, Palette } from "../src/draw/looks.ts";
import { isDim, lookOf } from "../src/draw/looks.ts";
import { makeScene, strokeAt } from "../src/draw/scene.ts";
import { escaped, toSvg } from "../src/draw/svg.ts";
import { arrange } from "../src/layout/arrange.ts";
import { dealCards } from "../src/lineage/cards.ts";
import type { Drawn, Node } from "../src/lineage/picture.ts";

const node = (id: string, name = id): [string, Node] => [id, { id, type: "DATASET", namespace: "ns", name }];
const drawn: Drawn = {
  start: "a",
  nodes: new Map([node("a", '<script>alert("1")</script>\u0000'), node("b"), node("c")]),
  edges: [
    { from: "a", to: "b" },
    { from: "b", to: "c" },
    { from: "c", to: "a" },
  ],
  columns: [
    {
      from: { dataset: "a", field: "x" },
      to: { dataset: "b", field: "x" },
      kinds: ["INDIRECT:FILTER"],
      masked: false,
      jobs: [],
      descriptions: [],
    },
  ],
};
const deck = dealCards(drawn, { columns: true, wanted: new Set(), opened: new Set() });
const picture = arrange({ boxes: deck.boxes, links: deck.lines.map((line) => line.link), anchor: "a" });
const scene = makeScene(deck, picture, boundsOf(deck.boxes, picture.places));
const colours = new Proxy({}, { get: (_, name) => `#${String(name)}` }) as Palette;
const plain: Emphasis = {
  trace: null,
  columns: null,
  nodeMarks: new Map(),
  edgeMarks: new Map(),
  columnMarks: new Map(),
  selected: "",
};

describe("the camera", () => {
  test("fits whatever there is", () => {
    const bounds = fc.record({
      left: fc.integer({ min: -9000, max: 0 }),
      top: fc.integer({ min: -9000, max: 0 }),
      right: fc.integer({ min: 1, max: 9000 }),
      bottom: fc.integer({ min: 1, max: 9000 }),
    });
    fc.assert(
      fc.property(bounds, (box) => {
        const view = seen(fitCamera(box, 1000, 700), 1000, 700);
        expect(view.left).toBeLessThanOrEqual(box.left);
        expect(view.right).toBeGreaterThanOrEqual(box.right);
        expect(view.top).toBeLessThanOrEqual(box.top);
        expect(view.bottom).toBeGreaterThanOrEqual(box.bottom);
      }),
    );
  });
  test("zooms around the hand", () => {
    const before = { x: 30, y: 40, k: 0.5 };
    const after = zoomCamera(before, 1.7, 200, 100);
    expect((200 - after.x) / after.k).toBeCloseTo((200 - before.x) / before.k);
    expect((100 - after.y) / after.k).toBeCloseTo((100 - before.y) / before.k);
  });
  test("moves no further than to show a card", () => {
    const place = { column: 0, x: 100, y: 100 };
    const box = { id: "a", width: 224, height: 52 };
    const there = { x: 0, y: 0, k: 1 };
    expect(revealCamera(there, place, box, 1000, 700)).toEqual(there);
    const moved = revealCamera({ x: -5000, y: 0, k: 1 }, place, box, 1000, 700);
    expect(moved.x + place.x).toBe(60);
  });
});

describe("lines", () => {
  test("are hit where they are, and not elsewhere", () => {
    const line = scene.strokes.find((each) => each.line.kind === "column")!;
    const [x0, y0] = [line.points[0]!, line.points[1]!];
    expect(strokeAt(scene, x0 + 1, y0, 5)).toBe(line);
    expect(strokeAt(scene, x0, y0 - 4000, 5)).toBeNull();
  });
  test("that close a cycle run back, around the cards", () => {
    expect(scene.strokes.filter((each) => each.back).map((each) => each.line.link.from)).toEqual(["c"]);
  });
  test("say by dashes what they are", () => {
    const column = scene.strokes.find((each) => each.line.kind === "column")!;
    expect(lookOf(column, plain, colours)).toMatchObject({ colour: "#indirect", dash: [5, 4] });
    const edge = scene.strokes.find((each) => each.line.kind === "edge")!;
    expect(lookOf(edge, { ...plain, edgeMarks: new Map([["a\nb", "removed"]]) }, colours)).toMatchObject({
      colour: "#removed",
      dash: [7, 4],
    });
    expect(isDim("b", { ...plain, trace: { nodes: new Set(["a"]), edges: new Set() } })).toBe(true);
  });
});

test("an SVG shows names, and nothing else comes of them", () => {
  const svg = toSvg(scene, plain, colours);
  expect(svg).not.toContain("<script");
  expect(svg).toContain("&lt;script&gt;");
  expect(svg.match(/<g transform/g)).toHaveLength(3);
  expect(escaped('a<b>&"\u0007')).toBe("a&lt;b&gt;&amp;&quot;\ufffd");
});

test("server-sent events are read line by line", () => {
  expect(parse('id: 7\nevent: run\ndata: {"a":\ndata: 1}\n: a remark')).toEqual({
    id: "7",
    event: "run",
    data: '{"a":\n1}',
  });
});
