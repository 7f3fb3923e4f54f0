// explorer/look: where one looks from -> what is in sight; what there is -> where to look first.
import { computed, signal } from "@preact/signals";
import { type Bounds, type Camera, FAR, fitCamera, revealCamera, seen } from "../draw/camera.ts";
import type { Scene } from "../draw/scene.ts";
import { CARD_WIDTH } from "../lineage/cards.ts";
import { drawn, scene, start, tidied, view, waiting } from "./session.ts";

export const camera = signal<Camera>({ x: 0, y: 0, k: 1 });
export const size = signal({ width: 800, height: 600, ratio: 1 });

/** What was asked for when the camera was last set by itself, and whether all of that had come. */
let fitted = { about: "", whole: false };

/** Somebody took the camera: it stays where it is put. */
export function take(next: Camera): void {
  fitted = { about: about(), whole: true };
  camera.value = next;
}

/** Another start, depth or granularity is another picture; what is expanded, hidden or compared is not. */
function about(): string {
  const { up, down, grain, column, columns, impact } = view.value;
  return JSON.stringify([start.value, up, down, grain, column, columns, impact, tidied.value]);
}

/** Looks at a new picture once; one that grows is left where it is. */
export function lookAt(found: Scene): void {
  const now = about();
  if (fitted.about === now && fitted.whole) return;
  fitted = { about: now, whole: !waiting.value };
  camera.value = firstLook(found);
}

export function showAll(): void {
  const { width, height } = size.peek();
  const found = scene.peek();
  if (found) take(fitCamera(found.bounds, width, height));
}

/** All of it if it can be read so; else the start, at a size that can. */
function firstLook(found: Scene): Camera {
  const { width, height } = size.peek();
  const whole = fitCamera(found.bounds, width, height);
  const first = drawn.peek()?.start ?? "";
  const place = found.places.get(first);
  const card = found.deck.cards.get(first);
  // the way of a column is worth seeing from end to end
  const smallest = view.peek().column ? FAR : FAR + 0.15;
  if (whole.k >= smallest || !place || !card) return whole;
  const k = FAR + 0.2;
  return {
    k,
    x: width / 2 - (place.x + CARD_WIDTH / 2) * k,
    y: height / 2 - (place.y + card.height / 2) * k,
  };
}

export function reveal(id: string): void {
  const found = scene.peek();
  const place = found?.places.get(id);
  const card = found?.deck.cards.get(id);
  if (!found || !place || !card) return;
  take(
    revealCamera(
      camera.value,
      place,
      { id, width: CARD_WIDTH, height: card.height },
      size.value.width,
      size.value.height,
    ),
  );
}

/** The cards that are in sight; none from far away, where they are drawn. */
const inSight = computed<string[]>(() => {
  const found = scene.value;
  if (!found || camera.value.k < FAR) return [];
  const box = widened(seen(camera.value, size.value.width, size.value.height, 40));
  const ids: string[] = [];
  for (const [id, place] of found.places) {
    const card = found.deck.cards.get(id);
    if (!card) continue;
    if (
      place.x < box.right &&
      place.x + CARD_WIDTH > box.left &&
      place.y < box.bottom &&
      place.y + card.height > box.top
    )
      ids.push(id);
  }
  return ids;
});
/** To the next lines of a coarse grid: cards come and go in groups, not one with each step. */
function widened(box: Bounds): Bounds {
  const grid = 300;
  return {
    left: Math.floor(box.left / grid) * grid,
    top: Math.floor(box.top / grid) * grid,
    right: Math.ceil(box.right / grid) * grid,
    bottom: Math.ceil(box.bottom / grid) * grid,
  };
}

/** Apart from the camera: what only asks this is not drawn anew with each step of it. */
export const isFar = computed(() => camera.value.k < FAR);
/** The same list as long as the same cards are in sight: moving costs no rendering. */
let lastSight: string[] = [];
export const sight = computed(() => {
  const next = inSight.value;
  if (next.length !== lastSight.length || next.some((id, at) => id !== lastSight[at])) lastSight = next;
  return lastSight;
});
