// layout/worker: an order -> its picture, beside the page: however large the graph, the page goes on.
import { arrange } from "./arrange.ts";
import type { Order } from "./shapes.ts";

addEventListener("message", (event: MessageEvent<{ turn: number; order: Order }>) => {
  const { turn, order } = event.data;
  postMessage({ turn, picture: arrange(order) });
});
