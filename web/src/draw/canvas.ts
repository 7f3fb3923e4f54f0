// draw/canvas: a scene, a camera and what is lit -> pixels: the lines, and from far away the boxes, too.
import { CARD_WIDTH } from "../lineage/cards.ts";
import { type Camera, FAR, seen } from "./camera.ts";
import { colourOf, type Emphasis, isDim, type Look, lookOf, type Palette } from "./looks.ts";
import { draw, meets, middleOf, type Scene, type Stroke } from "./scene.ts";

export function paint(
  pen: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  size: { width: number; height: number; ratio: number },
  emphasis: Emphasis,
  colours: Palette,
): void {
  const { width, height, ratio } = size;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colours.ground;
  pen.fillRect(0, 0, width * ratio, height * ratio);
  pen.setTransform(camera.k * ratio, 0, 0, camera.k * ratio, camera.x * ratio, camera.y * ratio);
  const view = seen(camera, width, height, 40);
  const far = camera.k < FAR;
  const groups = new Map<string, { look: Look; strokes: Stroke[] }>();
  for (const stroke of scene.strokes) {
    if (!meets(stroke.bounds, view)) continue;
    const look = lookOf(stroke, emphasis, colours);
    const key = `${look.layer}${look.colour}${look.width}${look.dash.length ? look.dash[0] : ""}`;
    const group = groups.get(key);
    if (group) group.strokes.push(stroke);
    else groups.set(key, { look, strokes: [stroke] });
  }
  // one path for all lines of a look: a call for each would cost more than the lines
  for (const { look, strokes } of [...groups.values()].sort((a, b) => a.look.layer - b.look.layer)) {
    pen.strokeStyle = look.colour;
    pen.lineWidth = far ? Math.max(look.width, 0.6 / camera.k) : look.width;
    pen.setLineDash(far && !look.layer ? [] : look.dash);
    pen.beginPath();
    for (const stroke of strokes) {
      if (far && !stroke.back) straight(pen, stroke);
      else draw(pen, stroke);
    }
    pen.stroke();
  }
  pen.setLineDash([]);
  if (far) paintBoxes(pen, scene, view, emphasis, colours);
  else paintNotes(pen, scene, view, colours);
}

/** From far away a curve is as good as the straight way. */
function straight(pen: CanvasRenderingContext2D, { points }: Stroke): void {
  pen.moveTo(points[0]!, points[1]!);
  for (let at = 2; at < points.length; at += 2) pen.lineTo(points[at]!, points[at + 1]!);
}

function paintBoxes(
  pen: CanvasRenderingContext2D,
  scene: Scene,
  view: ReturnType<typeof seen>,
  emphasis: Emphasis,
  colours: Palette,
): void {
  for (const [id, card] of scene.deck.cards) {
    const place = scene.places.get(id);
    if (
      !place ||
      place.x > view.right ||
      place.x + CARD_WIDTH < view.left ||
      place.y > view.bottom ||
      place.y + card.height < view.top
    )
      continue;
    const mark = emphasis.nodeMarks.get(id);
    pen.globalAlpha = isDim(id, emphasis) ? 0.25 : 1;
    pen.fillStyle = mark
      ? colours[mark]
      : id === emphasis.selected
        ? colours.lit
        : colourOf(card.node, colours);
    pen.fillRect(place.x, place.y, CARD_WIDTH, card.height);
  }
  pen.globalAlpha = 1;
}

/** What bridges hide, said on the line. */
function paintNotes(
  pen: CanvasRenderingContext2D,
  scene: Scene,
  view: ReturnType<typeof seen>,
  colours: Palette,
): void {
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  for (const stroke of scene.strokes) {
    if (stroke.line.kind !== "edge" || !stroke.line.edge.hidden || !meets(stroke.bounds, view)) continue;
    const { x, y } = middleOf(stroke);
    const text = `via ${stroke.line.edge.hidden} hidden`;
    const wide = pen.measureText(text).width + 8;
    pen.fillStyle = colours.paper;
    pen.fillRect(x - wide / 2, y - 8, wide, 16);
    pen.fillStyle = colours.text;
    pen.fillText(text, x, y + 4);
  }
}
