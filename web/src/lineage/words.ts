// lineage/words: a drawn graph -> the same as a list, a tree of text, Mermaid, JSON: one node set, several forms.
import { type Drawn, type Edge, type Node, neighbours, type Side, titleOf } from "./picture.ts";

/** The nodes, nearest first. */
export function listed(drawn: Drawn): Node[] {
  return [...drawn.nodes.values()].sort(
    (a, b) => (a.distance ?? 1e9) - (b.distance ?? 1e9) || (a.id < b.id ? -1 : 1),
  );
}

export interface Branch {
  id: string;
  node: Node;
  /** It stands elsewhere in the tree, with what hangs below it. */
  again: boolean;
  branches: Branch[];
}

/** From the start each way. What is told twice hangs below only the first; what neither way meets comes by itself. */
export function trees(drawn: Drawn): { up: Branch[]; down: Branch[]; apart: Node[] } {
  const around = neighbours(drawn.edges);
  const seen = new Set([drawn.start]);
  const grow = (id: string, side: Side): Branch[] =>
    [...new Set(around[side].get(id) ?? [])].sort().map((other) => {
      const again = seen.has(other);
      seen.add(other);
      return { id: other, node: drawn.nodes.get(other)!, again, branches: again ? [] : grow(other, side) };
    });
  const up = grow(drawn.start, "up");
  const down = grow(drawn.start, "down");
  return { up, down, apart: listed(drawn).filter((node) => !seen.has(node.id)) };
}

export function toTree(drawn: Drawn): string {
  const lines: string[] = [];
  const write = (branches: Branch[], indent: string) =>
    branches.forEach((branch, at) => {
      const last = at === branches.length - 1;
      lines.push(`${indent}${last ? "└─ " : "├─ "}${branch.id}${branch.again ? " (above)" : ""}`);
      write(branch.branches, indent + (last ? "   " : "│  "));
    });
  const { up, down, apart } = trees(drawn);
  lines.push(drawn.start);
  if (up.length) lines.push("upstream");
  write(up, "");
  if (down.length) lines.push("downstream");
  write(down, "");
  if (apart.length) lines.push("also shown", ...apart.map((node) => `   ${node.id}`));
  return `${lines.join("\n")}\n`;
}

export function toJson(drawn: Drawn): string {
  const edges = drawn.edges.map(
    ({ from, to, via, hidden }): Edge => ({
      from,
      to,
      ...(via ? { via } : {}),
      ...(hidden ? { hidden } : {}),
    }),
  );
  const nodes = listed(drawn).map((node) => ({
    ...node,
    distance: Number.isFinite(node.distance) ? node.distance : null,
  }));
  return `${JSON.stringify({ start: drawn.start, nodes, edges, columns: drawn.columns }, null, 2)}\n`;
}

export function toMermaid(drawn: Drawn): string {
  const names = new Map([...drawn.nodes.keys()].map((id, at) => [id, `n${at}`]));
  // a name may hold anything; Mermaid reads entities inside quotes
  const quoted = (text: string) =>
    `"${text.replace(/[^\w ./:,@=+-]/gu, (letter) => `#${letter.codePointAt(0)};`)}"`;
  const lines = ["flowchart LR"];
  for (const [id, node] of drawn.nodes) {
    const [open, close] =
      node.type === "JOB" || node.type === "RUN"
        ? ["([", "])"]
        : node.type === "GROUP"
          ? ["[[", "]]"]
          : ["[", "]"];
    lines.push(`  ${names.get(id)}${open}${quoted(titleOf(node))}${close}`);
  }
  for (const edge of drawn.edges)
    lines.push(
      `  ${names.get(edge.from)} ${edge.hidden ? `-. "via ${edge.hidden} hidden" .->` : "-->"} ${names.get(edge.to)}`,
    );
  return `${lines.join("\n")}\n`;
}

export function toCsv(rows: (string | number | null | undefined)[][]): string {
  const cell = (value: string | number | null | undefined) => {
    // a spreadsheet takes what begins with = + - @ for a formula
    const text = String(value ?? "").replace(/^(?=[=+\-@\t\r])/, "'");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}
