// Addresses: every state of the explorer and every page comes back from its address as it was.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { command, questions } from "../src/explorer/questions.ts";
import { contract, expand, PLAIN, readView, type View, writeView } from "../src/explorer/view.ts";
import { ago, bytes, clip, duration } from "../src/format.ts";
import { fieldId, nodeId, parseId } from "../src/nodes.ts";
import { readRoute, writeRoute } from "../src/route.ts";

const name = fc
  .string({ minLength: 1, maxLength: 12, unit: "binary" })
  .filter((each) => !each.includes("\n") && each.isWellFormed());
const views: fc.Arbitrary<View> = fc.record({
  up: fc.nat(20),
  down: fc.nat(20),
  grain: fc.constantFrom("application", "all", "dataset", "job", "run"),
  columns: fc.boolean(),
  column: fc.oneof(fc.constant(""), name),
  trace: fc.option(fc.record({ dataset: name, field: name })),
  expanded: fc.array(
    fc.record({ side: fc.constantFrom("up", "down"), times: fc.integer({ min: 1, max: 50 }), id: name }),
    { maxLength: 3 },
  ),
  hidden: fc.array(fc.record({ kind: fc.constantFrom("ns", "type", "name"), value: name }), { maxLength: 3 }),
  folded: fc.array(name, { maxLength: 3 }),
  opened: fc.array(name, { maxLength: 3 }),
  at: fc.constantFrom("", "-24h", "2026-01-31T12:00:00Z"),
  versus: fc.constantFrom("", "-7d"),
  impact: fc.boolean(),
  runs: fc.boolean(),
  form: fc.constantFrom("graph", "list", "tree"),
  selected: fc.oneof(fc.constant(""), name),
});

describe("the address of a view", () => {
  test("brings the whole view back", () => {
    fc.assert(
      fc.property(views, (view) => {
        expect(readView(new URLSearchParams(writeView(view).toString()))).toEqual(view);
      }),
    );
  });
  test("is empty for the plain one, and anything strange is read as that", () => {
    expect(writeView(PLAIN).toString()).toBe("");
    expect(readView(new URLSearchParams("up=x&down=-3&grain=what&view=none&x=sideways~a&hide=b"))).toEqual(
      PLAIN,
    );
  });
  test("keeps Marquez's depth", () => {
    expect(readView(new URLSearchParams("depth=3")).up).toBe(3);
  });
  test("expanding twice asks for more, contracting takes it all back", () => {
    const once = expand(PLAIN, "dataset:a:b", "up");
    const twice = expand(once, "dataset:a:b", "up");
    expect(twice.expanded).toEqual([{ id: "dataset:a:b", side: "up", times: 2 }]);
    expect(contract(twice, "dataset:a:b", "up")).toEqual(PLAIN);
  });
});

describe("questions", () => {
  test("the first view is one question for one hop each way", () => {
    const [only, ...rest] = questions("dataset:a:b", PLAIN, "");
    expect(rest).toEqual([]);
    expect(only!.parameters).toMatchObject({
      node: "dataset:a:b",
      direction: "both",
      depth: 1,
      granularity: "application",
      limit: 100,
    });
  });
  test("different depths are two, a column is one of its own, an expansion one more", () => {
    expect(
      questions("dataset:a:b", { ...PLAIN, up: 3 }, "").map((each) => each.parameters.direction),
    ).toEqual(["up", "down"]);
    expect(questions("dataset:a:b", { ...PLAIN, column: "x" }, "")[0]!.parameters.node).toBe(
      "datasetField:a:b:x",
    );
    expect(
      questions("dataset:a:b", expand(PLAIN, "job:c:d", "down"), "-1h").map((each) => each.parameters.at),
    ).toEqual(["-1h", "-1h"]);
  });
});

describe("the command that prints the same", () => {
  const start = "dataset:s3://lake:it's";
  test.each<[string, Partial<View>, string]>([
    [
      "the plain view",
      {},
      "graph 'dataset:s3://lake:it'\\''s' --direction both --depth 1 --granularity application",
    ],
    [
      "as of a time",
      { up: 0, down: 2, at: "-1h", grain: "all" },
      "--direction down --depth 2 --granularity all --at '-1h'",
    ],
    ["neither way", { up: 0, down: 0 }, "--direction both --depth 0"],
    [
      "the whole way of a column",
      { column: "x", grain: "dataset" },
      "graph 'datasetField:s3://lake:it'\\''s:x' --direction both --depth 20 --columns --granularity dataset",
    ],
    ["impact", { impact: true, at: "-1h" }, "impact 'dataset:s3://lake:it'\\''s' --at '-1h'"],
    ["two times", { versus: "-24h", up: 3 }, "diff '-24h' 'now' 'dataset:s3://lake:it'\\''s' --depth 3"],
  ])("%s", (_, change, words) => {
    const told = command(start, { ...PLAIN, ...change }, "http://h/base");
    expect(told).toContain(words);
    expect(told).toMatch(/^headwater .* --url 'http:\/\/h\/base'$/);
  });
});

describe("paths and ids", () => {
  test("a path brings its page back, whatever is in a name", () => {
    fc.assert(
      fc.property(name, name, (namespace, text) => {
        for (const page of ["dataset", "job"] as const)
          expect(readRoute(writeRoute({ page, namespace, name: text }))).toEqual({
            page,
            namespace,
            name: text,
          });
        const lineage = { page: "lineage", kind: "job", namespace, name: text } as const;
        expect(readRoute(writeRoute(lineage))).toEqual(lineage);
      }),
    );
  });
  test("strange paths are no page, and break nothing", () => {
    expect(readRoute("/nothing/here")).toEqual({ page: "unknown", path: "/nothing/here" });
    expect(readRoute("/datasets/a%/b").page).toBe("dataset");
    expect(readRoute("/lineage/table/a/b").page).toBe("unknown");
  });
  test.each([
    ["dataset:postgres://db:5432:shop.public.orders", "postgres://db:5432", "shop.public.orders"],
    ["dataset:s3://lake:gold/a", "s3://lake", "gold/a"],
    ["dataset:duckdb:///f.duckdb:main.t", "duckdb:///f.duckdb", "main.t"],
    ["job:spark:a.b:c", "spark", "a.b:c"],
    ["dataset:kafka://a:9092,b:9092:topic", "kafka://a:9092,b:9092", "topic"],
    ["dataset:http://[::1]:8080:v1/orders", "http://[::1]:8080", "v1/orders"],
    ["dataset:https://catalog:8181/ws:gold.t", "https://catalog:8181/ws", "gold.t"],
    ["dataset:s3://lake:2026/a", "s3://lake", "2026/a"],
    ["dataset:arn:aws:glue:eu-west-1:1234:table/db/t", "arn:aws:glue:eu-west-1:1234", "table/db/t"],
  ])("%s is cut where its name begins", (id, namespace, text) => {
    expect(parseId(id)).toMatchObject({ namespace, name: text });
  });
  test("an id that is cut at the wrong place is the same id again", () => {
    const id = "dataset:a:b:topic";
    expect(parseId(id).namespace).toBe("a");
    const { kind, namespace, name: text } = parseId(id);
    expect(nodeId(kind as "dataset", namespace, text)).toBe(id);
    expect(fieldId(id, "x")).toBe("datasetField:a:b:topic:x");
  });
});

describe("words for values", () => {
  test("durations and ages", () => {
    expect([0, 999, 1000, 61_000, 3_600_000, 90_000_000].map((ms) => duration(ms))).toEqual([
      "0 ms",
      "999 ms",
      "1 s",
      "1 min 1 s",
      "1 h",
      "1 d 1 h",
    ]);
    expect(ago("2026-01-31T12:00:00Z", Date.parse("2026-01-31T12:05:00Z"))).toBe("5 min ago");
    expect(ago(null, 0)).toBe("never");
    // the server's clock may be a little ahead of the page's, which looks twice a minute
    expect(ago("2026-01-31T12:00:30Z", Date.parse("2026-01-31T12:00:00Z"))).toBe("now");
    expect(ago("2026-01-31T12:02:00Z", Date.parse("2026-01-31T12:00:00Z"))).toBe("in 2 min");
    expect(bytes(1204)).toBe("1.2 KB");
  });
  test("long names keep both ends", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 5, max: 40 }), (text, most) => {
        expect([...clip(text, most)].length).toBeLessThanOrEqual(Math.max(most, 0));
        if ([...text].length <= most) expect(clip(text, most)).toBe(text);
      }),
    );
  });
});
