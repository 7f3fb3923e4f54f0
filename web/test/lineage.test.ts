// The graph as answers make it: merged, bridged, folded, compared, traced, and told in words; nothing is lost on the way.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Graph, Relation } from "../src/api/model.ts";
import { bridge, readHiding } from "../src/lineage/bridge.ts";
import { dealCards, HEAD, ROW, ROWS } from "../src/lineage/cards.ts";
import { compare } from "../src/lineage/compare.ts";
import { fold } from "../src/lineage/fold.ts";
import { merge } from "../src/lineage/merge.ts";
import { type Drawn, edgeKey, neighbours } from "../src/lineage/picture.ts";
import { traceColumn, traceNode } from "../src/lineage/trace.ts";
import { listed, toCsv, toJson, toMermaid, toTree, trees } from "../src/lineage/words.ts";

const node = (
  id: string,
  namespace = "ns",
  more?: { up?: number; down?: number },
): Graph["nodes"][number] => ({
  id,
  type: id.startsWith("j") ? "JOB" : "DATASET",
  namespace,
  name: id,
  distance: 1,
  ...(more ? { more } : {}),
});
const graph = (
  ids: (string | Graph["nodes"][number])[],
  edges: [string, string][],
  columns: Relation[] = [],
): Graph => ({
  start: null,
  nodes: ids.map((each) => (typeof each === "string" ? node(each) : each)),
  edges: edges.map(([from, to]) => ({ from, to })),
  columns,
  cut: false,
});
const drawnOf = (made: Graph, start = made.nodes[0]!.id): Drawn =>
  merge(start, [{ about: start, sides: ["up", "down"], graph: made }]);
const relation = (from: string, to: string, kinds = ["DIRECT:IDENTITY"]): Relation => {
  const field = (text: string) => ({ dataset: text.split(".")[0]!, field: text.split(".")[1]! });
  return { from: field(from), to: field(to), kinds, masked: false, jobs: [], descriptions: [] };
};

describe("merge", () => {
  test("counts what is still left out, less what another answer brought", () => {
    const first = graph([node("a"), node("j1", "ns", { up: 3 })], [["j1", "a"]]);
    expect(drawnOf(first).nodes.get("j1")!.more).toEqual({ up: 3 });
    const second = graph(
      [node("j1"), node("b"), node("c"), node("d")],
      [
        ["b", "j1"],
        ["c", "j1"],
        ["d", "j1"],
      ],
    );
    const both = merge("a", [
      { about: "a", sides: ["up", "down"], graph: first },
      { about: "j1", sides: ["up"], graph: second },
    ]);
    expect(both.nodes.get("j1")!.more).toBeUndefined();
    expect([...both.nodes.keys()].sort()).toEqual(["a", "b", "c", "d", "j1"]);
    expect(both.nodes.get("b")!.distance).toBe(Number.POSITIVE_INFINITY);
  });

  test("takes a part of what was left out off the count", () => {
    const first = graph([node("a", "ns", { down: 5 })], []);
    const other = graph(
      [node("x"), node("j1"), node("a")],
      [
        ["a", "j1"],
        ["j1", "x"],
      ],
    );
    const both = merge("a", [
      { about: "z", sides: ["up"], graph: first },
      { about: "x", sides: ["up"], graph: other },
    ]);
    expect(both.nodes.get("a")!.more).toEqual({ down: 4 });
  });
});

describe("bridge", () => {
  const chain = graph(
    [node("a"), node("j1", "tmp"), node("t", "tmp"), node("j2", "tmp"), node("b")],
    [
      ["a", "j1"],
      ["j1", "t"],
      ["t", "j2"],
      ["j2", "b"],
    ],
  );
  test("joins what stands on either side, and says how much is between", () => {
    const seen = bridge(drawnOf(chain), [{ kind: "ns", value: "tmp" }]);
    expect([...seen.nodes.keys()]).toEqual(["a", "b"]);
    expect(seen.edges).toEqual([{ from: "a", to: "b", hidden: 3 }]);
  });

  test("keeps the start, whatever is hidden", () => {
    expect([
      ...bridge(drawnOf(chain), [
        { kind: "name", value: "" },
        { kind: "type", value: "dataset" },
        { kind: "type", value: "job" },
      ]).nodes.keys(),
    ]).toEqual(["a"]);
  });

  test("who reached whom before still does", () => {
    const any = fc.record({
      edges: fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 25 }),
      hidden: fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }),
    });
    fc.assert(
      fc.property(any, ({ edges, hidden }) => {
        const made = graph(
          Array.from({ length: 10 }, (_, at) => node(`d${at}`, hidden[at] ? "off" : "on")),
          edges.map(([a, b]): [string, string] => [`d${a}`, `d${b}`]),
        );
        const all = drawnOf(made);
        const seen = bridge(all, [{ kind: "ns", value: "off" }]);
        for (const from of seen.nodes.keys()) {
          const before = new Set([...traceDown(all, from)].filter((id) => seen.nodes.has(id)));
          expect(traceDown(seen, from)).toEqual(before);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("reads what an address says", () => {
    expect(readHiding("ns:kafka://b:9092")).toEqual({ kind: "ns", value: "kafka://b:9092" });
    expect(readHiding("what:ever")).toBeNull();
  });
});

function traceDown(drawn: Drawn, from: string): Set<string> {
  const { down } = neighbours(drawn.edges);
  const found = new Set([from]);
  const front = [from];
  for (let at = front.pop(); at !== undefined; at = front.pop())
    for (const next of down.get(at) ?? []) if (!found.has(next)) front.push(...(found.add(next) && [next]));
  return found;
}

test("a folded namespace is one node with the edges of all its own", () => {
  const made = graph(
    [node("a"), node("t1", "tmp"), node("t2", "tmp"), node("b")],
    [
      ["a", "t1"],
      ["a", "t2"],
      ["t1", "t2"],
      ["t2", "b"],
    ],
  );
  const seen = fold(drawnOf(made), ["tmp"]);
  expect([...seen.nodes.keys()]).toEqual(["a", "group:tmp", "b"]);
  expect(seen.nodes.get("group:tmp")!.members).toBe(2);
  expect(seen.edges.map(edgeKey)).toEqual(["a\ngroup:tmp", "group:tmp\nb"]);
});

test("two times in one picture: what came, what went, what changed", () => {
  const before = drawnOf(
    graph(
      ["a", "j1", "b"],
      [
        ["a", "j1"],
        ["j1", "b"],
      ],
    ),
  );
  const after = drawnOf(
    graph(
      ["a", "j1", "c"],
      [
        ["a", "j1"],
        ["j1", "c"],
      ],
    ),
  );
  const both = compare(before, after, ["a"]);
  expect([...both.drawn.nodes.keys()].sort()).toEqual(["a", "b", "c", "j1"]);
  expect(Object.fromEntries(both.nodes)).toEqual({ c: "added", b: "removed", a: "changed" });
  expect(Object.fromEntries(both.edges)).toEqual({ "j1\nc": "added", "j1\nb": "removed" });
});

test("a path is what leads to a node and what it leads to, not its sisters", () => {
  const made = graph(
    ["a", "j1", "b", "j2", "c"],
    [
      ["a", "j1"],
      ["j1", "b"],
      ["a", "j2"],
      ["j2", "c"],
    ],
  );
  expect([...traceNode(drawnOf(made).edges, "b").nodes].sort()).toEqual(["a", "b", "j1"]);
});

test("a column is followed to its sources and to what is made of it", () => {
  const columns = [
    relation("a.x", "b.x"),
    relation("b.x", "c.y"),
    relation("a.z", "b.z"),
    relation("a.x", "d.x"),
  ];
  const found = traceColumn(columns, "b", "x");
  expect([...found.fields].sort()).toEqual(["a\nx", "b\nx", "c\ny"]);
  expect([...found.datasets].sort()).toEqual(["a", "b", "c"]);
  expect(found.relations.size).toBe(2);
});

describe("cards", () => {
  const wide = Array.from({ length: 40 }, (_, at) =>
    relation(`a.c${String(at).padStart(2, "0")}`, `b.c${String(at).padStart(2, "0")}`),
  );
  const made = drawnOf(graph(["a", "b"], [["a", "b"]], wide));
  test("show ten columns, and all when they are opened", () => {
    const closed = dealCards(made, { columns: true, wanted: new Set(), opened: new Set() }).cards.get("a")!;
    expect([closed.fields.length, closed.hiddenFields]).toEqual([ROWS, 30]);
    const opened = dealCards(made, { columns: true, wanted: new Set(), opened: new Set(["a"]) }).cards.get(
      "a",
    )!;
    expect([opened.fields.length, opened.hiddenFields]).toEqual([40, 0]);
  });
  test("show a column that is followed, wherever it stands", () => {
    const card = dealCards(made, { columns: true, wanted: new Set(["a\nc39"]), opened: new Set() }).cards.get(
      "a",
    )!;
    expect(card.fields[0]).toBe("c39");
  });
  test("have ports where their rows are", () => {
    const deck = dealCards(made, { columns: true, wanted: new Set(), opened: new Set() });
    const line = deck.lines.find((each) => each.kind === "column" && each.relation.from.field === "c03")!;
    expect(line.link.fromPort).toBe(HEAD + 3 * ROW + ROW / 2);
  });
});

describe("words", () => {
  const any = fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 20 }).map((edges) =>
    drawnOf(
      graph(
        Array.from({ length: 8 }, (_, at) => `d${at}`),
        edges.map(([a, b]): [string, string] => [`d${a}`, `d${b}`]),
      ),
      "d0",
    ),
  );
  test("list, tree, text, JSON and Mermaid tell the same nodes", () => {
    fc.assert(
      fc.property(any, (drawn) => {
        const ids = [...drawn.nodes.keys()].sort();
        expect(
          listed(drawn)
            .map((each) => each.id)
            .sort(),
        ).toEqual(ids);
        expect((JSON.parse(toJson(drawn)) as Graph).nodes.map((each) => each.id).sort()).toEqual(ids);
        const { up, down, apart } = trees(drawn);
        const told = new Set([drawn.start, ...apart.map((each) => each.id)]);
        const walk = (branches: typeof up) => {
          for (const each of branches) {
            told.add(each.id);
            walk(each.branches);
          }
        };
        walk(up);
        walk(down);
        expect([...told].sort()).toEqual(ids);
        for (const id of ids) {
          expect(toTree(drawn)).toContain(id);
          expect(toMermaid(drawn)).toContain(`"${id}"`);
        }
      }),
    );
  });

  test("names cannot break out of Mermaid, nor become a formula", () => {
    const hostile = drawnOf(graph([{ ...node("a"), name: '"]; click a "javascript:alert(1)"' }], []));
    expect(toMermaid(hostile)).not.toContain('"];');
    expect(toCsv([["=1+1", 'a"b', "x,y"]])).toBe('\'=1+1,"a""b","x,y"\r\n');
  });
});
