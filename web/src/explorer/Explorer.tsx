// explorer/Explorer: the page of lineage: what is shown and how, the picture, what is known of the chosen card, and time.
import { useEffect } from "preact/hooks";
import { live } from "../api/follow.ts";
import { onNews } from "../api/news.ts";
import { clip } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { Empty, Fault, Waiting } from "../parts/States.tsx";
import { ListForm, TreeForm } from "./Forms.tsx";
import { Side } from "./Side.tsx";
import { Stage } from "./Stage.tsx";
import {
  drawn,
  fault,
  leave,
  refresh,
  scene,
  standing,
  start,
  view,
  waiting,
  watchLayout,
  watchQuestions,
  whole,
} from "./session.ts";
import { TimeBar } from "./TimeBar.tsx";
import { Toolbar } from "./Toolbar.tsx";

/** News come in bursts: one look after each, not one for every event. */
const CALM = 1500;

/** Whether there is nothing but the start, whatever is hidden, folded or a hop too far. */
function isAlone(): boolean {
  const all = whole.value?.drawn;
  return all?.nodes.size === 1 && !all.nodes.get(all.start)?.more;
}

export function Explorer() {
  useTitle(clip(start.value.slice(start.value.lastIndexOf(":") + 1), 60));
  useEffect(() => {
    const stops = [watchQuestions(), watchLayout()];
    let wait: ReturnType<typeof setTimeout> | undefined;
    stops.push(
      onNews((entry) => {
        const graph = drawn.peek();
        const touched = [entry.job, ...(entry.inputs ?? []), ...(entry.outputs ?? [])];
        if (!graph || view.peek().at || !touched.some((id) => id && graph.nodes.has(id))) return;
        clearTimeout(wait);
        wait = setTimeout(refresh, CALM);
      }),
    );
    let was = live.peek();
    stops.push(
      live.subscribe((state) => {
        if ((was === "off" || was === "refused") && state === "on") refresh(); // what happened while the server was away
        was = state;
      }),
    );
    return () => {
      clearTimeout(wait);
      for (const stop of stops) stop();
      leave();
    };
  }, []);
  const graph = standing.value;
  return (
    <div class="explorer">
      <Toolbar />
      <div class="middle">
        {fault.value && !graph ? (
          <div class="form">
            <Fault fault={fault.value} again={refresh} />
          </div>
        ) : view.value.form === "graph" || !graph ? (
          <div class="pane">
            {!scene.value && <Waiting rows={6} />}
            <Stage />
            {waiting.value && scene.value && <p class="loading">Loading…</p>}
            {graph?.nodes.size === 1 && scene.value && isAlone() && (
              <Empty>Nothing is known to read or write it{view.value.at ? " at that time" : ""}.</Empty>
            )}
            {fault.value && graph && <Fault fault={fault.value} again={refresh} />}
          </div>
        ) : view.value.form === "list" ? (
          <ListForm graph={graph} />
        ) : (
          <TreeForm graph={graph} />
        )}
        <Side />
      </div>
      <TimeBar />
    </div>
  );
}
