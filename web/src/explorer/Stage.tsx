// explorer/Stage: the scene -> what is on screen: lines on a canvas, the cards in sight as elements; mouse and keys move it.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, href } from "../address.ts";
import { boundsOf, type Camera, FAR, fitCamera, revealCamera, seen, zoomCamera } from "../draw/camera.ts";
import { paint } from "../draw/canvas.ts";
import { type Palette, readPalette } from "../draw/looks.ts";
import { type Scene, strokeAt } from "../draw/scene.ts";
import { CARD_WIDTH } from "../lineage/cards.ts";
import { neighbours, type Side, titleOf } from "../lineage/picture.ts";
import { pageOf } from "../nodes.ts";
import { repaint } from "../parts/Frame.tsx";
import { writeRoute } from "../route.ts";
import { Card, domId } from "./Card.tsx";
import { Minimap } from "./Minimap.tsx";
import { drawn, emphasis, hovered, scene, setView, start, view } from "./session.ts";
import { expand } from "./view.ts";

export const camera = signal<Camera>({ x: 0, y: 0, k: 1 });
export const size = signal({ width: 800, height: 600, ratio: 1 });
/** The line under the mouse, in words. */
export const told = signal<{ x: number; y: number; lines: string[] } | null>(null);
/** Set until somebody moves the camera: a picture that grows is kept in view. */
let untouched = true;
let shownFor = "";

export function showAll(): void {
  const { width, height } = size.peek();
  const found = scene.peek();
  if (!found) return;
  untouched = true;
  const whole = fitCamera(found.bounds, width, height);
  camera.value = whole;
}

/** The cards that are in sight; none from far away, where they are drawn. */
const inSight = computed<string[]>(() => {
  const found = scene.value;
  if (!found || camera.value.k < FAR) return [];
  const box = seen(camera.value, size.value.width, size.value.height, 120);
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
/** The same list as long as the same cards are in sight: moving costs no rendering. */
let lastSight: string[] = [];
const sight = computed(() => {
  const next = inSight.value;
  if (next.length !== lastSight.length || next.some((id, at) => id !== lastSight[at])) lastSight = next;
  return lastSight;
});

export function Stage() {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = box.current!;
    const measure = () => {
      size.value = {
        width: element.clientWidth || 800,
        height: element.clientHeight || 600,
        ratio: Math.min(2, devicePixelRatio || 1),
      };
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  // a picture that nobody has moved yet is fitted when it comes
  useEffect(
    () =>
      effect(() => {
        const found = scene.value;
        if (!found) return;
        if (shownFor !== start.value) {
          shownFor = start.value;
          untouched = true;
        }
        size.value;
        if (untouched) camera.value = firstLook(found);
      }),
    [],
  );

  useEffect(() => {
    let frame = 0;
    let colours: Palette | null = null;
    let theme = -1;
    const stop = effect(() => {
      const [found, at, lit, area, turn] = [
        scene.value,
        camera.value,
        emphasis.value,
        size.value,
        repaint.value,
      ];
      cancelAnimationFrame(frame);
      if (!layer.current) return; // the stage is being left
      layer.current.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.k})`;
      frame = requestAnimationFrame(() => {
        if (!found || !canvas.current) return;
        if (theme !== turn || !colours) {
          theme = turn;
          colours = readPalette(document.documentElement);
        }
        const element = canvas.current;
        const [wide, high] = [Math.round(area.width * area.ratio), Math.round(area.height * area.ratio)];
        if (element.width !== wide || element.height !== high) {
          element.width = wide;
          element.height = high;
        }
        paint(element.getContext("2d")!, found, at, area, lit, colours);
        if (!painted.peek()) painted.value = performance.now();
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      stop();
    };
  }, []);

  const found = scene.value;
  const cards = sight.value;
  const focus = view.value.selected || drawn.value?.start || "";
  const held =
    found?.deck.cards.get(focus) && !cards.includes(focus) && camera.value.k >= FAR
      ? [...cards, focus]
      : cards;
  return (
    <div
      class="stage"
      ref={box}
      role="application"
      tabIndex={0}
      aria-label="Lineage graph. Left and right follow the data, up and down go to neighbours in a column, Enter opens, Space shows more."
      {...(held.includes(focus) ? { "aria-activedescendant": domId(focus) } : {})}
      onKeyDown={keys}
      onWheel={wheel}
      onPointerDown={(event) => drag(event, box.current!)}
      onPointerMove={(event) => point(event, box.current!)}
      onPointerLeave={() => {
        told.value = null;
      }}
      onDblClick={(event) => {
        if (event.target === canvas.current) showAll();
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div class="layer" ref={layer}>
        {found &&
          held.map((id) => {
            const card = found.deck.cards.get(id);
            const place = found.places.get(id);
            return card && place ? (
              <Card
                key={id}
                id={id}
                card={card}
                place={place}
                emphasis={emphasis.value}
                start={id === drawn.value?.start}
                focused={id === focus}
              />
            ) : null;
          })}
      </div>
      {told.value && (
        <div
          class="told"
          role="tooltip"
          style={{ left: `${told.value.x + 14}px`, top: `${told.value.y + 14}px` }}
        >
          {told.value.lines.map((line, at) => (
            <div key={at}>{line}</div>
          ))}
        </div>
      )}
      <Minimap />
      <p class="unseen" role="status" aria-live="polite">
        {found && focus ? sayWhere(found, focus) : ""}
      </p>
    </div>
  );
}

/** When the first picture was painted, for measurements. */
export const painted = signal(0);

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

function sayWhere(found: Scene, id: string): string {
  const card = found.deck.cards.get(id);
  if (!card) return "";
  const around = neighbours(drawn.value?.edges ?? []);
  return `${titleOf(card.node)}, ${card.node.type.toLowerCase()}, ${around.up.get(id)?.length ?? 0} upstream, ${around.down.get(id)?.length ?? 0} downstream`;
}

function wheel(event: WheelEvent & { currentTarget: HTMLElement }): void {
  event.preventDefault();
  untouched = false;
  const rect = event.currentTarget.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey || !event.shiftKey) {
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016));
    camera.value = zoomCamera(camera.value, factor, event.clientX - rect.left, event.clientY - rect.top);
  } else camera.value = { ...camera.value, x: camera.value.x - event.deltaY };
}

function drag(event: PointerEvent, element: HTMLElement): void {
  if (event.button !== 0 || (event.target instanceof Element && event.target.closest(".card, .minimap")))
    return;
  const from = { x: event.clientX, y: event.clientY, camera: camera.value };
  untouched = false;
  element.setPointerCapture(event.pointerId);
  const move = (next: PointerEvent) => {
    camera.value = {
      ...from.camera,
      x: from.camera.x + next.clientX - from.x,
      y: from.camera.y + next.clientY - from.y,
    };
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

function point(event: PointerEvent, element: HTMLElement): void {
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

export function reveal(id: string): void {
  const found = scene.peek();
  const place = found?.places.get(id);
  const card = found?.deck.cards.get(id);
  if (!found || !place || !card) return;
  untouched = false;
  camera.value = revealCamera(
    camera.value,
    place,
    { id, width: CARD_WIDTH, height: card.height },
    size.value.width,
    size.value.height,
  );
}

function keys(event: KeyboardEvent): void {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (event.target instanceof HTMLElement && event.target.closest("input, select, textarea"))
  )
    return;
  const found = scene.value;
  const graph = drawn.value;
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
    case "Enter":
      if (!/^(dataset|job|run):/.test(at)) return false;
      go(href(writeRoute(pageOf(at))));
      return true;
    case " ": {
      const more = drawn.value?.nodes.get(at)?.more;
      const side: Side = event.shiftKey || (more?.up && !more.down) ? "up" : "down";
      setView(expand(view.value, at, side));
      return true;
    }
    case "+":
    case "=":
    case "-":
      untouched = false;
      camera.value = zoomCamera(
        camera.value,
        event.key === "-" ? 0.8 : 1.25,
        size.value.width / 2,
        size.value.height / 2,
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
  const around = neighbours(drawn.value!.edges)[side].get(at) ?? [];
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

export const boundsOfScene = (found: Scene) => boundsOf(found.deck.boxes, found.places);
