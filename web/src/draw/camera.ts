// draw/camera: where one looks from: world -> screen is `k * world + (x, y)`. Pure.
import type { Box, Place } from "../layout/shapes.ts";

export interface Camera {
  x: number;
  y: number;
  k: number;
}

export interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export const NEAREST = 2;
export const FARTHEST = 0.004;
/** Below this, cards are boxes without text, drawn with the edges. */
export const FAR = 0.35;

/** At whole pixels of the screen: between them, the browser would have to blend all of the picture in every frame. */
export function snapped({ x, y, k }: Camera, ratio: number): Camera {
  return { x: Math.round(x * ratio) / ratio, y: Math.round(y * ratio) / ratio, k };
}

export function boundsOf(boxes: Box[], places: Map<string, Place>): Bounds {
  const found = {
    left: Number.POSITIVE_INFINITY,
    top: Number.POSITIVE_INFINITY,
    right: Number.NEGATIVE_INFINITY,
    bottom: Number.NEGATIVE_INFINITY,
  };
  for (const box of boxes) {
    const place = places.get(box.id);
    if (!place) continue;
    found.left = Math.min(found.left, place.x);
    found.top = Math.min(found.top, place.y);
    found.right = Math.max(found.right, place.x + box.width);
    found.bottom = Math.max(found.bottom, place.y + box.height);
  }
  return found.left <= found.right ? found : { left: 0, top: 0, right: 1, bottom: 1 };
}

/** The whole of it in view, never larger than life. */
export function fitCamera(bounds: Bounds, width: number, height: number, margin = 40): Camera {
  const wide = bounds.right - bounds.left;
  const high = bounds.bottom - bounds.top;
  const k = clamp(Math.min((width - 2 * margin) / wide, (height - 2 * margin) / high, 1));
  return { k, x: (width - wide * k) / 2 - bounds.left * k, y: (height - high * k) / 2 - bounds.top * k };
}

/** Nearer or farther, with the point under the hand where it is. */
export function zoomCamera(camera: Camera, factor: number, x: number, y: number): Camera {
  const k = clamp(camera.k * factor);
  const real = k / camera.k;
  return { k, x: x - (x - camera.x) * real, y: y - (y - camera.y) * real };
}

/** Moved so that a box is seen, and no more than that. */
export function revealCamera(
  camera: Camera,
  place: Place,
  box: Box,
  width: number,
  height: number,
  margin = 60,
): Camera {
  const k = Math.max(camera.k, FAR + 0.15);
  const around =
    k === camera.k
      ? camera
      : { k, x: width / 2 - (place.x + box.width / 2) * k, y: height / 2 - (place.y + box.height / 2) * k };
  const left = place.x * k + around.x;
  const top = place.y * k + around.y;
  const dx = shift(left, left + box.width * k, width, margin);
  const dy = shift(top, top + Math.min(box.height * k, height / 2), height, margin);
  return { k, x: around.x + dx, y: around.y + dy };
}

function shift(low: number, high: number, size: number, margin: number): number {
  if (low < margin) return margin - low;
  if (high > size - margin) return size - margin - high;
  return 0;
}

/** What of the world is on the screen, and a little more. */
export function seen(camera: Camera, width: number, height: number, margin = 0): Bounds {
  return {
    left: (-camera.x - margin) / camera.k,
    top: (-camera.y - margin) / camera.k,
    right: (width - camera.x + margin) / camera.k,
    bottom: (height - camera.y + margin) / camera.k,
  };
}

function clamp(k: number): number {
  return Math.min(NEAREST, Math.max(FARTHEST, k || 1));
}
