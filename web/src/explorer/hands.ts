// explorer/hands: wheel, drag and pointer -> the camera moves, a line tells what it is, a card is picked from afar.
import { signal } from "@preact/signals";
import { FAR, zoomCamera } from "../draw/camera.ts";
import { strokeAt } from "../draw/scene.ts";
import { CARD_WIDTH } from "../lineage/cards.ts";
import { camera, reveal, take } from "./look.ts";
import { scene, setView } from "./session.ts";

/** The line under the mouse, in words. */
export const told = signal<{ x: number; y: number; lines: string[] } | null>(null);

export function wheel(event: WheelEvent & { currentTarget: HTMLElement }): void {
  event.preventDefault();
  const rect = event.currentTarget.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey || !event.shiftKey) {
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016));
    take(zoomCamera(camera.value, factor, event.clientX - rect.left, event.clientY - rect.top));
  } else take({ ...camera.value, x: camera.value.x - event.deltaY });
}

export function drag(event: PointerEvent, element: HTMLElement): void {
  if (event.button !== 0 || (event.target instanceof Element && event.target.closest(".card, .minimap")))
    return;
  const from = { x: event.clientX, y: event.clientY, camera: camera.value };
  element.setPointerCapture(event.pointerId);
  const move = (next: PointerEvent) => {
    take({
      ...from.camera,
      x: from.camera.x + next.clientX - from.x,
      y: from.camera.y + next.clientY - from.y,
    });
  };
  const end = (last: PointerEvent) => {
    element.removeEventListener("pointermove", move);
    element.removeEventListener("pointerup", end);
    element.removeEventListener("pointercancel", end);
    const still = Math.hypot(last.clientX - from.x, last.clientY - from.y) < 4;
    if (still && camera.value.k < FAR) pick(last, element);
  };
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
}

/** From far away cards are pixels: find which one was meant. */
function pick(event: PointerEvent, element: HTMLElement): void {
  const found = scene.value;
  if (!found) return;
  const { x, y } = world(event, element);
  for (const [id, place] of found.places) {
    const card = found.deck.cards.get(id)!;
    if (x < place.x || x > place.x + CARD_WIDTH || y < place.y || y > place.y + card.height) continue;
    setView({ selected: id }, true);
    reveal(id);
    return;
  }
}

function world(event: PointerEvent, element: HTMLElement): { x: number; y: number } {
  const rect = element.getBoundingClientRect();
  const { x, y, k } = camera.value;
  return { x: (event.clientX - rect.left - x) / k, y: (event.clientY - rect.top - y) / k };
}

export function point(event: PointerEvent, element: HTMLElement): void {
  const found = scene.value;
  if (!found || event.buttons || (event.target instanceof Element && event.target.closest(".card"))) {
    told.value = null;
    return;
  }
  const { x, y } = world(event, element);
  const stroke = strokeAt(found, x, y, 6 / camera.value.k);
  if (stroke?.line.kind !== "column") {
    told.value = null;
    return;
  }
  const { relation } = stroke.line;
  const rect = element.getBoundingClientRect();
  told.value = {
    x: event.clientX - rect.left,
    y: event.clientY - rect.top,
    lines: [
      `${relation.from.field} → ${relation.to.field}`,
      relation.kinds.join(", "),
      ...relation.descriptions,
    ],
  };
}
