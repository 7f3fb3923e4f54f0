// pages/Small: an incident -> cause, symptom and what it hits in one small picture, laid out as the explorer does.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api/client.ts";
import type { Graph, Incident } from "../api/model.ts";
import { boundsOf } from "../draw/camera.ts";
import { readPalette } from "../draw/looks.ts";
import { makeScene } from "../draw/scene.ts";
import { toSvg } from "../draw/svg.ts";
import { arrange } from "../layout/arrange.ts";
import { dealCards } from "../lineage/cards.ts";
import { merge } from "../lineage/merge.ts";
import { repaint } from "../parts/Frame.tsx";

/** More than this is for the explorer. */
const MOST = 40;

export function Small({ incident }: { incident: Incident }) {
  const box = useRef<HTMLImageElement>(null);
  const [graph, setGraph] = useState<Graph | null>(null);
  const subject = incident.dataset ?? incident.job ?? "";
  useEffect(() => {
    if (!subject) return;
    const stop = new AbortController();
    ask<Graph>("/hw/v1/graph", { node: subject, depth: 3, limit: MOST / 2, states: true }, stop.signal).then(
      setGraph,
      () => {},
    );
    return () => stop.abort();
  }, [subject]);
  const turn = repaint.value;
  // another theme has other colours
  useEffect(() => {
    if (!graph || !box.current) return;
    const drawn = merge(subject, [{ about: subject, sides: ["up", "down"], graph }]);
    const deck = dealCards(drawn, { columns: false, wanted: new Set(), opened: new Set() });
    const picture = arrange({
      boxes: deck.boxes,
      links: deck.lines.map((line) => line.link),
      anchor: subject,
    });
    const scene = makeScene(deck, picture, boundsOf(deck.boxes, picture.places));
    const none = new Map<string, never>();
    const marks = new Map(none) as Map<string, "removed" | "changed">;
    marks.set(subject, "removed");
    if (incident.blamed?.job && drawn.nodes.has(incident.blamed.job))
      marks.set(incident.blamed.job, "changed");
    const svg = toSvg(
      scene,
      { trace: null, columns: null, nodeMarks: marks, edgeMarks: none, columnMarks: none, selected: "" },
      readPalette(document.documentElement),
    );
    const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    box.current.src = url;
    return () => URL.revokeObjectURL(url);
  }, [graph, turn]);
  if (!graph) return null;
  return (
    <img
      class="small"
      ref={box}
      alt={`${graph.nodes.length} nodes around what failed; the list below names what it hits`}
    />
  );
}
