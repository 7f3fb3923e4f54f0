// explorer/Card: a node -> its card: what it is called, how it stands, its columns, and what more hangs on either side.

import type { Emphasis } from "../draw/looks.ts";
import { isDim } from "../draw/looks.ts";
import { clip, plural, short } from "../format.ts";
import type { Place } from "../layout/shapes.ts";
import { CARD_WIDTH, type Card as Dealt, HEAD, ROW } from "../lineage/cards.ts";
import { fieldKey, type Side, titleOf } from "../lineage/picture.ts";
import { Kind, StateBadge } from "../parts/Words.tsx";
import { hovered, hoveredField, setView, view } from "./session.ts";
import { contract, expand } from "./view.ts";

interface Props {
  id: string;
  card: Dealt;
  place: Place;
  emphasis: Emphasis;
  start: boolean;
  focused: boolean;
}

const SIGNS = { added: "+", removed: "−", changed: "~" } as const;

export function Card({ id, card, place, emphasis, start, focused }: Props) {
  const { node } = card;
  const mark = emphasis.nodeMarks.get(id);
  const kind =
    node.type === "GROUP" ? "group" : node.type === "JOB" ? "job" : node.type === "RUN" ? "run" : "dataset";
  const classes = [
    "card",
    kind,
    start ? "start" : "",
    focused ? "focused" : "",
    mark ?? "",
    isDim(id, emphasis) ? "dim" : "",
  ];
  const state = node.lastRun?.state ?? node.state;
  return (
    <div
      id={domId(id)}
      class={classes.filter(Boolean).join(" ")}
      role="group"
      aria-current={focused}
      aria-label={spoken(card, mark)}
      tabIndex={-1}
      style={{
        left: `${place.x}px`,
        top: `${place.y}px`,
        width: `${CARD_WIDTH}px`,
        height: `${card.height}px`,
      }}
      onMouseEnter={() => {
        hovered.value = id;
      }}
      onMouseLeave={() => {
        hovered.value = "";
      }}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest("button")) return;
        setView({ selected: id }, true);
      }}
      onKeyDown={() => {}}
    >
      <div class="head" style={{ height: `${HEAD}px` }}>
        <div class="name">
          <Kind kind={kind} /> <bdi title={node.name ?? node.id}>{clip(short(titleOf(node)), 26)}</bdi>
          {mark && <span class={`mark ${mark}`}>{SIGNS[mark]}</span>}
        </div>
        <div class="under">
          {(state !== undefined || view.value.runs) && kind !== "dataset" && kind !== "group" && (
            <StateBadge state={state} brief />
          )}{" "}
          {(node.jobs ?? 0) > 1 && <span class="badge">{plural(node.jobs!, "part")}</span>}{" "}
          {node.members !== undefined ? (
            plural(node.members, "node")
          ) : (
            <bdi title={node.namespace}>{clip(node.namespace ?? node.type.toLowerCase(), 30)}</bdi>
          )}
        </div>
      </div>
      {card.fields.map((field) => (
        <Column key={field} dataset={id} field={field} emphasis={emphasis} />
      ))}
      {(card.hiddenFields > 0 || view.value.opened.includes(id)) && (
        <button
          type="button"
          tabIndex={-1}
          class="fields"
          style={{ height: `${ROW}px` }}
          onClick={() => toggle(id)}
        >
          {card.hiddenFields ? `${plural(card.hiddenFields, "more column")}` : "fewer columns"}
        </button>
      )}
      {kind !== "group" && view.value.grain !== "run" && (
        <>
          <Chip id={id} side="up" more={node.more?.up} near={focused || hovered.value === id} />
          <Chip id={id} side="down" more={node.more?.down} near={focused || hovered.value === id} />
        </>
      )}
    </div>
  );
}

function Column({ dataset, field, emphasis }: { dataset: string; field: string; emphasis: Emphasis }) {
  const lit = emphasis.columns?.fields.has(fieldKey({ dataset, field }));
  const followed = view.value.trace?.dataset === dataset && view.value.trace.field === field;
  return (
    <button
      type="button"
      tabIndex={-1}
      class={`column ${emphasis.columns ? (lit ? "lit" : "dim") : ""}`}
      aria-pressed={followed}
      style={{ height: `${ROW}px` }}
      onMouseEnter={() => {
        hoveredField.value = { dataset, field };
      }}
      onMouseLeave={() => {
        hoveredField.value = null;
      }}
      onClick={() => setView({ trace: followed ? null : { dataset, field }, selected: dataset }, true)}
    >
      <bdi title={field}>{clip(field, 30)}</bdi>
    </button>
  );
}

function Chip({ id, side, more, near }: { id: string; side: Side; more: number | undefined; near: boolean }) {
  const open = view.value.expanded.some((each) => each.id === id && each.side === side);
  if (!near && !more && !open) return null; // elements cost frames: only what says something is there
  const way = side === "up" ? "upstream" : "downstream";
  return (
    <span class={`chips ${side} `}>
      {open && (
        <button
          type="button"
          tabIndex={-1}
          title={`Show less ${way}`}
          aria-label={`Show less ${way}`}
          onClick={() => setView(contract(view.value, id, side))}
        >
          −
        </button>
      )}
      {(more || !open) && (
        <button
          type="button"
          tabIndex={-1}
          title={more ? `${more} more ${way}` : `Show what is ${way}`}
          aria-label={more ? `${more} more ${way}` : `Show what is ${way}`}
          onClick={() => setView(expand(view.value, id, side))}
        >
          +{more ?? ""}
        </button>
      )}
    </span>
  );
}

function toggle(id: string): void {
  const { opened } = view.value;
  setView({ opened: opened.includes(id) ? opened.filter((each) => each !== id) : [...opened, id] }, true);
}

/** What a screen reader says of a card. */
function spoken({ node }: Dealt, mark: string | undefined): string {
  const state = node.lastRun?.state ?? node.state;
  const more = [
    node.more?.up && `${node.more.up} more upstream`,
    node.more?.down && `${node.more.down} more downstream`,
  ];
  return [titleOf(node), node.type.toLowerCase(), state?.toLowerCase(), mark, ...more]
    .filter(Boolean)
    .join(", ");
}

export const domId = (id: string): string =>
  `card-${id.replace(/[^\w-]/g, (letter) => `_${letter.charCodeAt(0).toString(36)}`)}`;
