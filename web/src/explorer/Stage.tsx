// explorer/Stage: the scene -> what is on screen: lines on a canvas, the cards in sight as elements; mouse and keys move it.
import { effect, untracked } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { snapped } from "../draw/camera.ts";
import { Easel } from "../draw/easel.ts";
import type { Scene } from "../draw/scene.ts";
import { neighbours, titleOf } from "../lineage/picture.ts";
import { repaint } from "../parts/Frame.tsx";
import { Card, domId } from "./Card.tsx";
import { drag, point, told, wheel } from "./hands.ts";
import { keys } from "./keys.ts";
import { camera, isFar, lookAt, showAll, sight, size } from "./look.ts";
import { Minimap } from "./Minimap.tsx";
import { emphasis, scene, standing, view } from "./session.ts";

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

  useEffect(
    () =>
      effect(() => {
        const found = scene.value; // nothing else: a view that changed shows when its picture is there
        if (found) untracked(() => lookAt(found));
      }),
    [],
  );

  useEffect(() => {
    const easel = new Easel(canvas.current!);
    let frame = 0;
    let scale = 0;
    const stop = effect(() => {
      const [found, at] = [scene.value, snapped(camera.value, size.value.ratio)];
      const shown = { camera: at, emphasis: emphasis.value, size: size.value, theme: repaint.value };
      cancelAnimationFrame(frame);
      if (!layer.current) return; // the stage is being left
      // while it only moves, the browser moves what it has drawn; another scale must be drawn anew, or text is blurred
      layer.current.style.willChange = at.k === scale ? "transform" : "auto";
      scale = at.k;
      layer.current.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.k})`;
      frame = requestAnimationFrame(() => {
        if (found && canvas.current) easel.show({ ...shown, scene: found });
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      stop();
    };
  }, []);

  const found = scene.value;
  const cards = sight.value;
  const focus = view.value.selected || standing.value?.start || "";
  const held =
    found?.deck.cards.get(focus) && !cards.includes(focus) && !isFar.value ? [...cards, focus] : cards;
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
                start={id === standing.value?.start}
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

function sayWhere(found: Scene, id: string): string {
  const card = found.deck.cards.get(id);
  if (!card) return "";
  const around = neighbours(standing.value?.edges ?? []);
  return `${titleOf(card.node)}, ${card.node.type.toLowerCase()}, ${around.up.get(id)?.length ?? 0} upstream, ${around.down.get(id)?.length ?? 0} downstream`;
}
