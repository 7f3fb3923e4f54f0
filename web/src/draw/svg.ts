// draw/svg: a scene -> the whole of it as an SVG document, to keep or to print.
import { clip, short } from "../format.ts";
import { CARD_WIDTH, HEAD, ROW } from "../lineage/cards.ts";
import { titleOf } from "../lineage/picture.ts";
import { colourOf, type Emphasis, lookOf, type Palette } from "./looks.ts";
import { draw, type Pen, type Scene } from "./scene.ts";

export function toSvg(scene: Scene, emphasis: Emphasis, colours: Palette): string {
  const margin = 24;
  const { left, top, right, bottom } = scene.bounds;
  const [width, height] = [right - left + 2 * margin, bottom - top + 2 * margin];
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left - margin} ${top - margin} ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif">`,
    `<rect x="${left - margin}" y="${top - margin}" width="${width}" height="${height}" fill="${colours.paper}"/>`,
  ];
  for (const stroke of scene.strokes) {
    const look = lookOf(stroke, emphasis, colours);
    const dash = look.dash.length ? ` stroke-dasharray="${look.dash.join(" ")}"` : "";
    parts.push(
      `<path d="${pathOf((pen) => draw(pen, stroke))}" fill="none" stroke="${look.colour}" stroke-width="${look.width}"${dash}/>`,
    );
  }
  for (const [id, card] of scene.deck.cards) {
    const place = scene.places.get(id);
    if (!place) continue;
    const colour = colourOf(card.node, colours);
    const mark = emphasis.nodeMarks.get(id);
    parts.push(
      `<g transform="translate(${place.x} ${place.y})"><rect width="${CARD_WIDTH}" height="${card.height}" rx="6" fill="${colours.paper}" stroke="${mark ? colours[mark] : colour}" stroke-width="${mark ? 3 : 1.5}"/>`,
      `<rect width="4" height="${card.height}" fill="${colour}"/>`,
      text(12, 21, 13, colours.text, clip(short(titleOf(card.node)), 24), true),
      text(12, 39, 11, colours.text, clip(card.node.namespace ?? card.node.type.toLowerCase(), 34)),
      ...card.fields.map((field, at) => text(12, HEAD + at * ROW + 15, 12, colours.text, clip(field, 30))),
      "</g>",
    );
  }
  parts.push("</svg>");
  return `${parts.join("\n")}\n`;
}

function text(x: number, y: number, size: number, colour: string, words: string, bold = false): string {
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${colour}"${bold ? ' font-weight="600"' : ""}>${escaped(words)}</text>`;
}

/** XML allows few control characters, and names may hold any. */
export function escaped(words: string): string {
  const safe: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const allowed = (letter: string) => letter >= " " && letter < "\ufffe";
  return Array.from(words, (letter) => (allowed(letter) ? (safe[letter] ?? letter) : "\ufffd")).join("");
}

function pathOf(drawn: (pen: Pen) => void): string {
  const steps: string[] = [];
  const n = (value: number) => String(Math.round(value * 10) / 10);
  drawn({
    moveTo: (x, y) => steps.push(`M${n(x)} ${n(y)}`),
    lineTo: (x, y) => steps.push(`L${n(x)} ${n(y)}`),
    bezierCurveTo: (a, b, c, d, x, y) => steps.push(`C${n(a)} ${n(b)} ${n(c)} ${n(d)} ${n(x)} ${n(y)}`),
  });
  return steps.join("");
}
