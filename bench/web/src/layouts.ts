// layouts: a graph and whose layout -> how long it took in a fresh page, and how often lines cross.
import { arrange } from "@web/layout/arrange.ts";
import { lineageLike } from "../../../web/test/graphs.ts";
import { asked, crossings, size, tell } from "./measure.ts";

const { boxes, links } = lineageLike(size);
const places = new Map<string, { x: number; y: number }>();

async function run(which: string): Promise<void> {
  if (which === "ours") for (const [id, place] of arrange({ boxes, links }).places) places.set(id, place);
  else if (which === "dagre") {
    const { Graph, layout } = await import("@dagrejs/dagre");
    const graph = new Graph();
    graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 68, ranker: "tight-tree" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const box of boxes) graph.setNode(box.id, { width: box.width, height: box.height });
    for (const link of links) graph.setEdge(link.from, link.to);
    begun = performance.now();
    layout(graph);
    for (const box of boxes) {
      const { x, y } = graph.node(box.id);
      places.set(box.id, { x: x - box.width / 2, y: y - box.height / 2 });
    }
  } else {
    const { default: Elk } = await import("elkjs/lib/elk.bundled.js");
    begun = performance.now();
    const found = await new Elk().layout({
      id: "root",
      layoutOptions: { "elk.algorithm": "layered", "elk.direction": "RIGHT", "elk.layered.thoroughness": "3", "elk.layered.nodePlacement.strategy": "LINEAR_SEGMENTS" },
      children: boxes.map((box) => ({ ...box })),
      edges: links.map((link, at) => ({ id: `e${at}`, sources: [link.from], targets: [link.to] })),
    });
    for (const each of found.children ?? []) places.set(each.id, { x: each.x ?? 0, y: each.y ?? 0 });
  }
}

let begun = performance.now();
run(asked.get("which") ?? "ours").then(
  () => tell({ seconds: (performance.now() - begun) / 1000, crossings: crossings(links, places) }),
  (fault: unknown) => tell({ fault: String(fault) }),
);
