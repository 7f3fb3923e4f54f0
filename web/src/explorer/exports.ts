// explorer/exports: the picture as it stands -> PNG, SVG, JSON, Mermaid or text, as files.
import { readPalette } from "../draw/looks.ts";
import { toSvg } from "../draw/svg.ts";
import { toJson, toMermaid, toTree } from "../lineage/words.ts";
import { save } from "../parts/files.ts";
import { drawn, emphasis, scene } from "./session.ts";

export type Format = "png" | "svg" | "json" | "mmd" | "txt";

/** Browsers draw no larger picture than this. */
const MOST_PIXELS = 8000;

export async function exportAs(format: Format): Promise<void> {
  const graph = drawn.value;
  if (!graph) return;
  const name = `lineage-${(graph.nodes.get(graph.start)?.name ?? "graph").replace(/[^\w.-]+/g, "_").slice(-60)}.${format}`;
  if (format === "json") save(name, toJson(graph), "application/json");
  else if (format === "mmd") save(name, toMermaid(graph));
  else if (format === "txt") save(name, toTree(graph));
  else if (scene.value) {
    const svg = toSvg(scene.value, emphasis.value, readPalette(document.documentElement));
    if (format === "svg") save(name, svg, "image/svg+xml");
    else save(name, await toPng(svg));
  }
}

async function toPng(svg: string): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const scale = Math.min(2, MOST_PIXELS / image.width, MOST_PIXELS / image.height);
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(image.width * scale));
    canvas.height = Math.max(1, Math.round(image.height * scale));
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob(
        (blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))),
        "image/png",
      ),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}
