// explorer/session: an address -> questions -> answers -> a graph -> a picture. Each step a signal, none knows the next.
import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { go, here, href, query, route } from "../address.ts";
import { ask, Problem } from "../api/client.ts";
import type { Difference, Graph } from "../api/model.ts";
import { boundsOf } from "../draw/camera.ts";
import type { Emphasis } from "../draw/looks.ts";
import { makeScene, type Scene } from "../draw/scene.ts";
import { askLayout } from "../layout/ask.ts";
import type { Picture } from "../layout/shapes.ts";
import { bridge } from "../lineage/bridge.ts";
import { dealCards } from "../lineage/cards.ts";
import { type Compared, compare } from "../lineage/compare.ts";
import { fold } from "../lineage/fold.ts";
import { type Answer, merge } from "../lineage/merge.ts";
import { type Drawn, fieldKey } from "../lineage/picture.ts";
import { traceColumn, traceNode } from "../lineage/trace.ts";
import { nodeId } from "../nodes.ts";
import { type Question, questions } from "./questions.ts";
import { readView, type View, writeView } from "./view.ts";

export const start = computed(() => {
  const at = route.value;
  return at.page === "lineage" ? nodeId(at.kind, at.namespace, at.name) : "";
});
export const view = computed<View>(() => readView(query.value));
/** The view without what only marks a card: choosing another one asks for nothing and lays nothing out anew. */
const wording = computed(() => JSON.stringify({ ...view.value, selected: "", form: "graph" }));
const shape = computed<View>(() => JSON.parse(wording.value) as View);

export function setView(change: Partial<View>, replace = false): void {
  go(href(here.value.path, writeView({ ...view.value, ...change })), replace);
}

// ---- what was asked and answered

const answers = signal(new Map<string, Graph>());
const asking = new Set<string>();
export const fault = signal<Problem | null>(null);
export const changes = signal<Difference | null>(null);

const now = computed(() => (start.value ? questions(start.value, shape.value, shape.value.at) : []));
const before = computed(() =>
  start.value && shape.value.versus ? questions(start.value, shape.value, shape.value.versus) : [],
);

export const waiting = computed(
  () => [...now.value, ...before.value].some((each) => !answers.value.has(each.key)) && !fault.value,
);

const wanted = (): Question[] => [...now.peek(), ...before.peek()];

/** Ask what is not known yet. Answers stay, so that going back is at once. */
export function watchQuestions(): () => void {
  return effect(() => {
    const asked = [...now.value, ...before.value];
    fault.value = null; // what was wrong with the last ones says nothing of these
    for (const question of asked) void load(question);
  });
}

async function load(question: Question): Promise<void> {
  if (answers.peek().has(question.key) || asking.has(question.key)) return;
  asking.add(question.key);
  try {
    const graph = await ask<Graph>("/hw/v1/graph", question.parameters);
    answers.value = new Map(answers.peek()).set(question.key, graph);
  } catch (failed) {
    if (!(failed instanceof Problem)) throw failed;
    // somebody may have gone on meanwhile
    if (wanted().some((each) => each.key === question.key)) fault.value = failed;
  } finally {
    asking.delete(question.key);
  }
}

/** Ask everything anew: something changed, or the server is back. */
export function refresh(): void {
  fault.value = null;
  void Promise.all(
    wanted().map(async (each) => [each.key, await ask<Graph>("/hw/v1/graph", each.parameters)] as const),
  ).then(
    (fresh) => {
      answers.value = new Map(fresh);
    },
    (failed: unknown) => {
      if (failed instanceof Problem && !answers.peek().size) fault.value = failed;
    },
  );
}

// ---- the graph

function gather(asked: Question[]): Drawn | null {
  const known: Answer[] = [];
  for (const each of asked) {
    const graph = answers.value.get(each.key);
    if (graph) known.push({ about: each.about, sides: each.sides, graph });
    else if (each === asked[0]) return null;
  }
  if (!known.length) return null;
  const first = known[0]!.graph;
  const named = [start.value, first.start ?? ""].find((id) => first.nodes.some((node) => node.id === id));
  return merge(named ?? first.nodes[0]?.id ?? start.value, known);
}

/** Everything that was answered, before filters. */
export const whole = computed<Compared | null>(() => {
  const after = gather(now.value);
  if (!after) return null;
  const none = new Map<string, never>();
  if (!shape.value.versus) return { drawn: after, nodes: none, edges: none, columns: none };
  const earlier = gather(before.value);
  if (!earlier) return null;
  const moved = changes.value?.schemas.map((each) => each.dataset) ?? [];
  return compare(
    earlier,
    after,
    moved.filter((id) => after.nodes.has(id)),
  );
});

export const drawn = computed<Drawn | null>(() => {
  const all = whole.value;
  return all && fold(bridge(all.drawn, shape.value.hidden), shape.value.folded);
});

// ---- the picture

export const hovered = signal("");
export const hoveredField = signal<{ dataset: string; field: string } | null>(null);
export const tidied = signal(0);

const showsColumns = computed(() => shape.value.columns || Boolean(shape.value.column));

const columnTrace = computed(() => {
  const graph = drawn.value;
  const at = hoveredField.value ?? shape.value.trace;
  return graph && at && showsColumns.value ? traceColumn(graph.columns, at.dataset, at.field) : null;
});

const deck = computed(() => {
  const graph = drawn.value;
  if (!graph) return null;
  const followed = shape.value.trace;
  const wanted =
    followed && showsColumns.value
      ? traceColumn(graph.columns, followed.dataset, followed.field).fields
      : new Set<string>();
  if (shape.value.column) wanted.add(fieldKey({ dataset: start.value, field: shape.value.column }));
  return dealCards(graph, { columns: showsColumns.value, wanted, opened: new Set(shape.value.opened) });
});

export const emphasis = computed<Emphasis>(() => {
  const graph = drawn.value;
  const marks = whole.value;
  const id = hovered.value;
  return {
    trace: graph && id && graph.nodes.has(id) ? traceNode(graph.edges, id) : null,
    columns: columnTrace.value,
    nodeMarks: marks?.nodes ?? new Map(),
    edgeMarks: marks?.edges ?? new Map(),
    columnMarks: marks?.columns ?? new Map(),
    selected: view.value.selected,
  };
});

export const scene = signal<Scene | null>(null);
/** The graph that the picture on screen was made of: while another one is asked for, keys and forms go by this. */
export const pictured = signal<Drawn | null>(null);
export const standing = computed(() => drawn.value ?? pictured.value);

/** Where cards stood; a graph around another node, or in another grain, begins anew. */
let kept: { about: string; picture: Picture } | null = null;

export function watchLayout(): () => void {
  return effect(() => {
    const cards = deck.value;
    const about = `${start.value} ${shape.value.grain} ${shape.value.column} ${tidied.value}`;
    if (!cards) return;
    const old = kept?.about === about ? kept.picture : null;
    const graph = untracked(() => drawn.value);
    void askLayout({
      boxes: cards.boxes,
      links: cards.lines.map((line) => line.link),
      anchor: graph?.start ?? "",
      ...(old ? { kept: old.places } : {}),
    }).then((picture) => {
      kept = { about, picture };
      batch(() => {
        pictured.value = graph;
        scene.value = makeScene(cards, picture, boundsOf(cards.boxes, picture.places));
      });
    });
  });
}

export function leave(): void {
  kept = null;
  scene.value = null;
  pictured.value = null;
  hovered.value = "";
  hoveredField.value = null;
  changes.value = null;
  fault.value = null;
}
