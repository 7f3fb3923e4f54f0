// xyflow: the same graph in React Flow, at the places of our layout or of `layout`; `visible` draws only what is in sight.
import "@xyflow/react/dist/style.css";
import { arrange } from "@web/layout/arrange.ts";
import { ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { createRoot } from "react-dom/client";
import { createElement } from "react";
import { lineageLike } from "../../../web/test/graphs.ts";
import { asked, framesPerSecond, shown, size, tell } from "./measure.ts";
import { dagre, elk } from "./peers.ts";

const { boxes, links } = lineageLike(size);
const begun = performance.now();
const peer = { dagre, elk }[asked.get("layout") ?? ""];
const places = peer ? await peer({ boxes, links }, () => {}) : arrange({ boxes, links }).places;
const laidOut = performance.now() - begun;
const nodes = boxes.map((box) => ({ id: box.id, position: places.get(box.id)!, data: { label: `dataset ${box.id}` }, sourcePosition: "right" as const, targetPosition: "left" as const, width: 224, height: 52 }));
const edges = links.map((link, at) => ({ id: `e${at}`, source: link.from, target: link.to }));

function ready(flow: ReactFlowInstance): void {
  void measure(flow);
}

async function measure(flow: ReactFlowInstance): Promise<void> {
  while (document.querySelectorAll(".react-flow__node").length === 0) await shown();
  const painted = await shown();
  const middle = places.get(boxes[Math.floor(boxes.length / 2)]!.id)!;
  const pan = (zoom: number) => (step: number) => {
    void flow.setViewport({ zoom, x: 700 - middle.x * zoom + Math.sin(step / 20) * 300, y: 450 - middle.y * zoom + Math.cos(step / 20) * 200 });
  };
  pan(0.1)(0);
  await shown();
  const far = await framesPerSecond(pan(0.1));
  pan(1)(0);
  await shown();
  const near = await framesPerSecond(pan(1));
  const cards = document.querySelectorAll(".react-flow__node").length;
  tell({ painted: painted / 1000, layout: laidOut / 1000, far, near, cards, elements: document.querySelectorAll("*").length });
}

createRoot(document.getElementById("root")!).render(
  createElement(ReactFlow, { nodes, edges, onInit: ready, fitView: true, minZoom: 0.01, onlyRenderVisibleElements: asked.get("visible") === "1" } as never),
);
