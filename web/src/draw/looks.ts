// draw/looks: what is lit, marked, or dimmed, and the colours of the theme -> how each line and box looks.
import type { Mark } from "../lineage/compare.ts";
import { edgeKey, fieldKey, type Node } from "../lineage/picture.ts";
import type { ColumnTrace, Trace } from "../lineage/trace.ts";
import type { Stroke } from "./scene.ts";

export interface Emphasis {
  trace: Trace | null;
  columns: ColumnTrace | null;
  nodeMarks: Map<string, Mark>;
  edgeMarks: Map<string, Mark>;
  columnMarks: Map<string, Mark>;
  selected: string;
}

export interface Palette {
  line: string;
  faint: string;
  lit: string;
  column: string;
  indirect: string;
  masked: string;
  added: string;
  removed: string;
  changed: string;
  dataset: string;
  job: string;
  group: string;
  text: string;
  paper: string;
  /** What the picture stands on. */
  ground: string;
  failed: string;
}

/** The colours, from the style sheet: one place says them, light and dark. */
export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const take = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    line: take("line"),
    faint: take("faint"),
    lit: take("accent"),
    column: take("column"),
    indirect: take("indirect"),
    masked: take("masked"),
    added: take("added"),
    removed: take("removed"),
    changed: take("changed"),
    dataset: take("dataset"),
    job: take("job"),
    group: take("group"),
    text: take("ink"),
    paper: take("card"),
    ground: take("paper"),
    failed: take("bad"),
  };
}

export interface Look {
  colour: string;
  width: number;
  dash: number[];
  /** Later ones are drawn over earlier ones. */
  layer: 0 | 1 | 2;
}

const SOLID: number[] = [];

export function lookOf(stroke: Stroke, emphasis: Emphasis, colours: Palette): Look {
  const { line } = stroke;
  if (line.kind === "column") {
    const { relation } = line;
    const indirect = relation.kinds.every((kind) => kind.startsWith("INDIRECT"));
    const colour = relation.masked ? colours.masked : indirect ? colours.indirect : colours.column;
    const dash = indirect ? [5, 4] : relation.masked ? [1, 3] : SOLID;
    if (emphasis.columns) {
      const on = emphasis.columns.relations.has(relation);
      return on
        ? { colour, width: 2.2, dash, layer: 2 }
        : { colour: colours.faint, width: 0.8, dash, layer: 0 };
    }
    const mark = emphasis.columnMarks.get(`${fieldKey(relation.from)}\n${fieldKey(relation.to)}`);
    if (mark) return { colour: colours[mark], width: 1.8, dash, layer: 2 };
    return { colour, width: 1.2, dash, layer: 1 };
  }
  const key = edgeKey(line.edge);
  const dash = line.edge.hidden ? [2, 4] : SOLID;
  const mark = emphasis.edgeMarks.get(key);
  if (mark) return { colour: colours[mark], width: 2.2, dash: mark === "removed" ? [7, 4] : dash, layer: 2 };
  if (emphasis.trace) {
    const on = emphasis.trace.edges.has(key);
    return on
      ? { colour: colours.lit, width: 2.2, dash, layer: 2 }
      : { colour: colours.faint, width: 1, dash, layer: 0 };
  }
  if (emphasis.columns) return { colour: colours.faint, width: 1, dash, layer: 0 };
  return { colour: colours.line, width: 1.3, dash, layer: 0 };
}

/** Whether what is lit leaves a node in the dark. */
export function isDim(id: string, { trace, columns }: Emphasis): boolean {
  if (columns) return !columns.datasets.has(id) && id.startsWith("dataset:");
  return trace ? !trace.nodes.has(id) : false;
}

export function colourOf(node: Node, colours: Palette): string {
  if (node.type === "GROUP") return colours.group;
  if ((node.lastRun?.state ?? node.state) === "FAIL") return colours.failed;
  return node.type === "JOB" || node.type === "RUN" ? colours.job : colours.dataset;
}
