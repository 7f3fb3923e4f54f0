// lineage/cards: a drawn graph -> cards with their heights, and the lines between them with their ports.
import type { Relation } from "../api/model.ts";
import type { Box, Link } from "../layout/shapes.ts";
import { type Drawn, type Edge, fieldKey, type Node } from "./picture.ts";

export const CARD_WIDTH = 224;
export const HEAD = 52;
export const ROW = 24;
/** How many columns a card shows before one has to look for them. */
export const ROWS = 10;

export interface Card {
  node: Node;
  height: number;
  fields: string[];
  /** How many columns are not shown. */
  hiddenFields: number;
}

export type Line =
  | { kind: "edge"; edge: Edge; link: Link }
  | { kind: "column"; relation: Relation; link: Link };

export interface Deck {
  cards: Map<string, Card>;
  boxes: Box[];
  lines: Line[];
}

export interface Wish {
  columns: boolean;
  /** Columns that must be shown, whatever else is. */
  wanted: Set<string>;
  /** Cards that show all of their columns. */
  opened: Set<string>;
}

export function dealCards(drawn: Drawn, wish: Wish): Deck {
  const fields = wish.columns ? fieldsOf(drawn.columns) : new Map<string, Set<string>>();
  const cards = new Map<string, Card>();
  const port = new Map<string, number>();
  for (const [id, node] of drawn.nodes) {
    const all = [...(fields.get(id) ?? [])].sort();
    // those that somebody follows come first, or they would be hidden in a wide table
    const first = all.filter((field) => wish.wanted.has(fieldKey({ dataset: id, field })));
    const rest = all.filter((field) => !wish.wanted.has(fieldKey({ dataset: id, field })));
    const most = wish.opened.has(id) ? all.length : Math.max(ROWS, first.length);
    const shown = [...first, ...rest].slice(0, most);
    const hidden = all.length - shown.length;
    shown.forEach((field, at) => {
      port.set(fieldKey({ dataset: id, field }), HEAD + at * ROW + ROW / 2);
    });
    const rows = shown.length + (hidden || wish.opened.has(id) ? 1 : 0);
    cards.set(id, { node, height: HEAD + rows * ROW + (rows ? 6 : 0), fields: shown, hiddenFields: hidden });
  }
  const lines: Line[] = drawn.edges.map((edge) => ({
    kind: "edge",
    edge,
    link: { from: edge.from, to: edge.to, fromPort: HEAD / 2, toPort: HEAD / 2 },
  }));
  if (wish.columns)
    for (const relation of drawn.columns) {
      const fromPort = port.get(fieldKey(relation.from));
      const toPort = port.get(fieldKey(relation.to));
      if (fromPort === undefined || toPort === undefined || relation.from.dataset === relation.to.dataset)
        continue;
      lines.push({
        kind: "column",
        relation,
        link: { from: relation.from.dataset, to: relation.to.dataset, fromPort, toPort },
      });
    }
  const boxes = [...cards].map(([id, card]) => ({ id, width: CARD_WIDTH, height: card.height }));
  return { cards, boxes, lines };
}

function fieldsOf(relations: Relation[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const each of relations)
    for (const { dataset, field } of [each.from, each.to]) {
      const have = found.get(dataset);
      if (have) have.add(field);
      else found.set(dataset, new Set([field]));
    }
  return found;
}
