// explorer/Minimap: the whole scene in the corner, and what of it is in sight; a click goes there.
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Camera, fitCamera, seen } from "../draw/camera.ts";
import { colourOf, type Palette, readPalette } from "../draw/looks.ts";
import { CARD_WIDTH } from "../lineage/cards.ts";
import { repaint } from "../parts/Frame.tsx";
import { camera, size, take } from "./look.ts";
import { scene } from "./session.ts";

const WIDTH = 180;
const HEIGHT = 110;

export function Minimap() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const own = useRef<Camera>({ x: 0, y: 0, k: 1 });

  useEffect(() => {
    let drawnFor: unknown = null;
    let colours: Palette | null = null;
    const boxes = document.createElement("canvas");
    boxes.width = WIDTH;
    boxes.height = HEIGHT;
    return effect(() => {
      const [found, at, area, turn] = [scene.value, camera.value, size.value, repaint.value];
      if (!found || !canvas.current) return;
      const key = `${turn}`;
      // asking for styles makes the browser work them out: once for each theme, not with each step
      if (!colours || boxes.dataset.turn !== key) colours = readPalette(document.documentElement);
      own.current = fitCamera(found.bounds, WIDTH, HEIGHT, 6);
      const { x, y, k } = own.current;
      // boxes change with the scene alone: while one moves, only the frame does
      if (drawnFor !== found || boxes.dataset.turn !== key) {
        drawnFor = found;
        boxes.dataset.turn = key;
        const pen = boxes.getContext("2d")!;
        pen.clearRect(0, 0, WIDTH, HEIGHT);
        for (const [id, card] of found.deck.cards) {
          const place = found.places.get(id);
          if (!place) continue;
          pen.fillStyle = colourOf(card.node, colours);
          pen.fillRect(
            place.x * k + x,
            place.y * k + y,
            Math.max(2, CARD_WIDTH * k),
            Math.max(1, card.height * k),
          );
        }
      }
      const pen = canvas.current.getContext("2d")!;
      pen.clearRect(0, 0, WIDTH, HEIGHT);
      pen.drawImage(boxes, 0, 0);
      const view = seen(at, area.width, area.height);
      pen.strokeStyle = colours.lit;
      pen.lineWidth = 1.5;
      pen.strokeRect(
        view.left * k + x,
        view.top * k + y,
        (view.right - view.left) * k,
        (view.bottom - view.top) * k,
      );
    });
  }, []);

  const jump = (event: PointerEvent & { currentTarget: HTMLCanvasElement }) => {
    if (!event.buttons) return;
    const rect = event.currentTarget.getBoundingClientRect();
    const wx = (event.clientX - rect.left - own.current.x) / own.current.k;
    const wy = (event.clientY - rect.top - own.current.y) / own.current.k;
    const { k } = camera.value;
    take({ k, x: size.value.width / 2 - wx * k, y: size.value.height / 2 - wy * k });
  };
  return (
    <canvas
      ref={canvas}
      class="minimap"
      width={WIDTH}
      height={HEIGHT}
      aria-hidden="true"
      onPointerDown={jump}
      onPointerMove={jump}
    />
  );
}
