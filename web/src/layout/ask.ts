// layout/ask: an order -> a promise of its picture, from the worker unless it is small; a newer order makes older ones void.
import { arrange } from "./arrange.ts";
import type { Order, Picture } from "./shapes.ts";

/** A graph with no more boxes and lines than this is laid out before a worker would have started. */
const SMALL = 700;

let worker: Worker | null = null;
let turn = 0;
const waiting = new Map<number, (picture: Picture) => void>();

/** The picture; never answered if another one was asked for meanwhile. */
export function askLayout(order: Order): Promise<Picture> {
  const mine = ++turn;
  if (order.boxes.length + order.links.length <= SMALL) return Promise.resolve(arrange(order));
  if (!worker) {
    worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<{ turn: number; picture: Picture }>) => {
      const done = waiting.get(event.data.turn);
      for (const each of [...waiting.keys()]) if (each <= event.data.turn) waiting.delete(each);
      if (event.data.turn === turn) done?.(event.data.picture);
    });
  }
  worker.postMessage({ turn: mine, order });
  return new Promise((resolve) => waiting.set(mine, resolve));
}
