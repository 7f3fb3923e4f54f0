// measure: a page that is drawn -> how many frames a second it makes while it is moved, and how often its lines cross.

/** Frames a second over two seconds of panning. */
export async function framesPerSecond(move: (step: number) => void): Promise<number> {
  return new Promise((resolve) => {
    let frames = 0;
    const begun = performance.now();
    const turn = () => {
      frames += 1;
      move(frames);
      const passed = performance.now() - begun;
      if (passed < 2000) requestAnimationFrame(turn);
      else resolve((frames * 1000) / passed);
    };
    requestAnimationFrame(turn);
  });
}

/** Crossings of the straight lines between boxes: the same count for every layout, whatever it bends. */
export function crossings(links: { from: string; to: string }[], places: Map<string, { x: number; y: number }>): number {
  const lines = links.map(({ from, to }) => {
    const a = places.get(from)!;
    const b = places.get(to)!;
    return [a.x + 224, a.y + 22, b.x, b.y + 22, Math.min(a.x + 224, b.x), Math.max(a.x + 224, b.x)] as const;
  });
  lines.sort((a, b) => a[4] - b[4]);
  const side = (ax: number, ay: number, bx: number, by: number, cx: number, cy: number) => Math.sign((bx - ax) * (cy - ay) - (by - ay) * (cx - ax));
  let found = 0;
  for (let i = 0; i < lines.length; i++) {
    const a = lines[i]!;
    for (let j = i + 1; j < lines.length && lines[j]![4] < a[5]; j++) {
      const b = lines[j]!;
      if (side(a[0], a[1], a[2], a[3], b[0], b[1]) * side(a[0], a[1], a[2], a[3], b[2], b[3]) < 0 && side(b[0], b[1], b[2], b[3], a[0], a[1]) * side(b[0], b[1], b[2], b[3], a[2], a[3]) < 0) found++;
    }
  }
  return found;
}

export const asked = new URLSearchParams(location.search);
export const size = Number(asked.get("n") ?? 200);

export function tell(result: unknown): void {
  (globalThis as { result?: unknown }).result = result;
}

/** After the browser has shown what was drawn: the frame after the next. */
export const shown = (): Promise<number> => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now()))));
