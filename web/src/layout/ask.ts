// layout/ask: an order -> a promise of its picture, from the worker; a newer order makes older ones void.
import type { Order, Picture } from "./shapes.ts";

let worker: Worker | null = null;
let turn = 0;
const waiting = new Map<number, (picture: Picture) => void>();

/** The picture; never answered if another one was asked for meanwhile. */
export function askLayout(order: Order): Promise<Picture> {
  if (!worker) {
    worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<{ turn: number; picture: Picture }>) => {
      const done = waiting.get(event.data.turn);
      for (const each of [...waiting.keys()]) if (each <= event.data.turn) waiting.delete(each);
      if (event.data.turn === turn) done?.(event.data.picture);
    });
  }
  const mine = ++turn;
  worker.postMessage({ turn: mine, order });
  return new Promise((resolve) => waiting.set(mine, resolve));
}
