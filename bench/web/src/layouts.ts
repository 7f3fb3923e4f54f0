// layouts: a graph and whose layout -> how long it took in a fresh page, and how often lines cross.
import { arrange } from "@web/layout/arrange.ts";
import { lineageLike } from "../../../web/test/graphs.ts";
import { asked, crossings, size, tell } from "./measure.ts";
import { dagre, elk } from "./peers.ts";

const graph = lineageLike(size);
let begun = performance.now();
const ready = () => {
  begun = performance.now(); // loading them is counted where a page is drawn
};
const which = { dagre, elk }[asked.get("which") ?? ""] ?? (async () => arrange(graph).places);
which(graph, ready).then(
  (places) => tell({ seconds: (performance.now() - begun) / 1000, crossings: crossings(graph.links, places) }),
  (fault: unknown) => tell({ fault: String(fault) }),
);
