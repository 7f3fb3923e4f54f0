// explorer/keys: a key pressed in the picture -> the card beside, its page, more of it, or another way of looking.
import { go, href } from "../address.ts";
import { zoomCamera } from "../draw/camera.ts";
import type { Scene } from "../draw/scene.ts";
import { neighbours, type Side, subjectOf } from "../lineage/picture.ts";
import { pageOf } from "../nodes.ts";
import { writeRoute } from "../route.ts";
import { camera, reveal, showAll, size, take } from "./look.ts";
import { hovered, scene, setView, standing, view } from "./session.ts";
import { expand } from "./view.ts";

export function keys(event: KeyboardEvent): void {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (event.target instanceof HTMLElement && event.target.closest("input, select, textarea"))
  )
    return;
  const found = scene.value;
  const graph = standing.value; // while another picture is asked for, the one that is seen answers
  if (!found || !graph) return;
  const at = view.value.selected && graph.nodes.has(view.value.selected) ? view.value.selected : graph.start;
  const done = act(event, at, found);
  if (done) event.preventDefault();
}

function act(event: KeyboardEvent, at: string, found: Scene): boolean {
  switch (event.key) {
    case "ArrowRight":
      return step(at, "down", found);
    case "ArrowLeft":
      return step(at, "up", found);
    case "ArrowDown":
      return beside(at, 1, found);
    case "ArrowUp":
      return beside(at, -1, found);
    case "Enter": {
      const subject = subjectOf(standing.value?.nodes.get(at));
      if (subject) go(href(writeRoute(pageOf(subject))));
      return Boolean(subject);
    }
    case " ": {
      if (view.value.grain === "run") return false;
      const more = standing.value?.nodes.get(at)?.more;
      const side: Side = event.shiftKey || (more?.up && !more.down) ? "up" : "down";
      setView(expand(view.value, at, side));
      return true;
    }
    case "+":
    case "=":
    case "-":
      take(
        zoomCamera(camera.value, event.key === "-" ? 0.8 : 1.25, size.value.width / 2, size.value.height / 2),
      );
      return true;
    case "f":
      showAll();
      return true;
    case "c":
      setView({ columns: !view.value.columns, trace: null });
      return true;
    case "i":
      setView({ impact: !view.value.impact });
      return true;
    case "Escape":
      hovered.value = "";
      setView({ trace: null, selected: "" }, true);
      return true;
    default:
      return false;
  }
}

/** Along an edge; of several, to the one that stands nearest. */
function step(at: string, side: Side, found: Scene): boolean {
  const here = found.places.get(at);
  const around = neighbours(standing.value!.edges)[side].get(at) ?? [];
  const nearest = around.filter((id) => found.places.has(id)).sort((a, b) => gap(a) - gap(b))[0];
  function gap(id: string): number {
    return Math.abs(found.places.get(id)!.y - (here?.y ?? 0));
  }
  return nearest !== undefined && select(nearest);
}

function beside(at: string, way: 1 | -1, found: Scene): boolean {
  const here = found.places.get(at);
  if (!here) return false;
  const next = [...found.places]
    .filter(([, place]) => place.column === here.column && (place.y - here.y) * way > 0)
    .sort((a, b) => (a[1].y - b[1].y) * way)[0];
  return next !== undefined && select(next[0]);
}

function select(id: string): boolean {
  setView({ selected: id }, true);
  reveal(id);
  return true;
}
