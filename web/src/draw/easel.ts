// draw/easel: a canvas and what to show on it -> painted a little beyond what is seen, so that moving costs no painting.
import type { Camera } from "./camera.ts";
import { paint } from "./canvas.ts";
import { type Emphasis, type Palette, readPalette } from "./looks.ts";
import type { Scene } from "./scene.ts";

/** How far beyond the edges it is painted, in pixels of the screen. */
const BEYOND = 240;

export interface Shown {
  scene: Scene;
  camera: Camera;
  size: { width: number; height: number; ratio: number };
  emphasis: Emphasis;
  /** Another number is another theme. */
  theme: number;
}

export class Easel {
  private last: Shown | null = null;
  private colours: Palette | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  show(now: Shown): void {
    const { camera, size } = now;
    const moved = this.last && { x: camera.x - this.last.camera.x, y: camera.y - this.last.camera.y };
    if (moved && this.isSame(now) && Math.abs(moved.x) <= BEYOND && Math.abs(moved.y) <= BEYOND) {
      this.canvas.style.transform = `translate(${moved.x}px, ${moved.y}px)`;
      return;
    }
    if (!this.colours || this.last?.theme !== now.theme) this.colours = readPalette(document.documentElement);
    const whole = { width: size.width + 2 * BEYOND, height: size.height + 2 * BEYOND, ratio: size.ratio };
    const [wide, high] = [Math.round(whole.width * size.ratio), Math.round(whole.height * size.ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
      Object.assign(this.canvas.style, {
        width: `${whole.width}px`,
        height: `${whole.height}px`,
        left: `${-BEYOND}px`,
        top: `${-BEYOND}px`,
      });
    }
    const shifted = { k: camera.k, x: camera.x + BEYOND, y: camera.y + BEYOND };
    // opaque: what nothing shines through need not be blended with what is behind it, in every frame
    paint(
      this.canvas.getContext("2d", { alpha: false })!,
      now.scene,
      shifted,
      whole,
      now.emphasis,
      this.colours,
    );
    this.canvas.style.transform = "none";
    this.last = now;
  }

  /** Whether it would be painted as it was, but for where it stands. */
  private isSame(now: Shown): boolean {
    const { last } = this;
    return (
      last?.scene === now.scene &&
      last.camera.k === now.camera.k &&
      last.emphasis === now.emphasis &&
      last.theme === now.theme &&
      last.size === now.size
    );
  }
}
