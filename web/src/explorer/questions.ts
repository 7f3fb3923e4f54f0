// explorer/questions: a view of a node -> what to ask the server for it, or to type in a terminal. The same question is asked once.
import type { Parameters } from "../api/client.ts";
import type { Side } from "../lineage/picture.ts";
import { fieldId } from "../nodes.ts";
import type { View } from "./view.ts";

export interface Question {
  key: string;
  about: string;
  sides: Side[];
  parameters: Parameters;
}

/** How many nodes a picture begins with; what is left out is counted where it was. */
export const MOST_DRAWN = 200;
/** How many hops the way of a column is followed. */
const WHOLE_WAY = 20;
/** How many neighbours a click adds, with what stands right behind them. */
const MORE_AT_A_TIME = 100;

export function questions(start: string, view: View, at: string): Question[] {
  const shared: Parameters = {
    granularity: view.grain,
    columns: view.columns || Boolean(view.column) || undefined,
    states: view.runs || undefined,
    at: at || undefined,
  };
  if (view.grain === "run") delete shared.columns;
  const make = (about: string, sides: Side[], more: Parameters): Question => {
    const parameters = { node: about, direction: sides.length > 1 ? "both" : sides[0]!, ...more, ...shared };
    return { key: JSON.stringify(parameters), about, sides, parameters };
  };
  const asked: Question[] = [];
  const up = view.impact ? 0 : view.up;
  const down = view.impact ? Math.max(view.down, 3) : view.down;
  if (view.column) {
    const about = fieldId(start, view.column);
    asked.push({ ...make(about, ["up", "down"], { depth: WHOLE_WAY, limit: 5000 }), about: start });
  } else if (up === down) asked.push(make(start, ["up", "down"], { depth: up, limit: MOST_DRAWN / 2 }));
  else {
    const limit = up && down ? MOST_DRAWN / 2 : MOST_DRAWN;
    if (up || !down) asked.push(make(start, ["up"], { depth: up, limit }));
    if (down) asked.push(make(start, ["down"], { depth: down, limit }));
  }
  for (const { id, side, times } of view.expanded)
    asked.push(
      make(id, [side], { depth: 1, fan: MORE_AT_A_TIME * times, limit: 3 * MORE_AT_A_TIME * times + 1 }),
    );
  return asked;
}

/** The line that prints the same graph in a terminal. */
export function command(start: string, view: View, server: string): string {
  const { up, down, impact, columns, at, versus, column, grain } = view;
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const node = quoted(column ? fieldId(start, column) : start);
  const url = `--url ${quoted(server)}`;
  if (versus) {
    const depth = Math.max(up, down, 1);
    return `headwater diff ${quoted(versus)} ${quoted(at || "now")} ${quoted(start)} --depth ${depth} ${url}`;
  }
  const then = at ? ` --at ${quoted(at)}` : "";
  if (impact) return `headwater impact ${node}${then} ${url}`;
  const direction = column || Boolean(up) === Boolean(down) ? "both" : down ? "down" : "up";
  const depth = column ? WHOLE_WAY : Math.max(up, down);
  const more = `${columns || column ? " --columns" : ""} --granularity ${grain}${then}`;
  return `headwater graph ${node} --direction ${direction} --depth ${depth}${more} ${url}`;
}
