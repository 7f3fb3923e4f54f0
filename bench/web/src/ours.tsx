// ours: a graph -> the stage of the web UI itself, with its worker; when it was painted, and how it moves.
import "@web/style.css";
import { boundsOf } from "@web/draw/camera.ts";
import { makeScene } from "@web/draw/scene.ts";
import { camera } from "@web/explorer/look.ts";
import { Stage } from "@web/explorer/Stage.tsx";
import { scene } from "@web/explorer/session.ts";
import { askLayout } from "@web/layout/ask.ts";
import { dealCards } from "@web/lineage/cards.ts";
import type { Drawn, Node } from "@web/lineage/picture.ts";
import { h, render } from "preact";
import { lineageLike } from "../../../web/test/graphs.ts";
import { framesPerSecond, shown, size, tell } from "./measure.ts";

const { boxes, links } = lineageLike(size);
const nodes = new Map(boxes.map((box): [string, Node] => [box.id, { id: box.id, type: "DATASET", namespace: "bench", name: `dataset ${box.id}`, distance: 1 }]));
const drawn: Drawn = { start: boxes[0]!.id, nodes, edges: links, columns: [] };

const deck = dealCards(drawn, { columns: false, wanted: new Set(), opened: new Set() });
render(h(Stage, {}), document.getElementById("root")!);
const asked = performance.now();
const picture = await askLayout({ boxes: deck.boxes, links: deck.lines.map((line) => line.link) });
const laidOut = performance.now() - asked;
scene.value = makeScene(deck, picture, boundsOf(deck.boxes, picture.places));
const painted = await shown();
const middle = picture.places.get(boxes[Math.floor(boxes.length / 2)]!.id)!;
const pan = (k: number) => (step: number) => {
  camera.value = { k, x: 700 - middle.x * k + Math.sin(step / 20) * 300, y: 450 - middle.y * k + Math.cos(step / 20) * 200 };
};
pan(0.1)(0);
await shown();
const far = await framesPerSecond(pan(0.1));
pan(1)(0);
await shown();
const near = await framesPerSecond(pan(1));
const cards = document.querySelectorAll(".card").length;
if (!cards) throw new Error("no card is in sight: nothing was measured");
tell({ painted: painted / 1000, layout: laidOut / 1000, far, near, cards, elements: document.querySelectorAll("*").length });
