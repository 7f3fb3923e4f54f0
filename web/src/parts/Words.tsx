// parts/Words: ids, times, states -> small pieces of text that lead somewhere.

import { href } from "../address.ts";
import type { State } from "../api/model.ts";
import { ago, clip, clock } from "../format.ts";
import { lineageOf, pageOf, parseId } from "../nodes.ts";
import { writeRoute } from "../route.ts";
import { now } from "./use.ts";

export function NodeLink({ id, most = 60 }: { id: string; most?: number }) {
  const { kind, namespace, name } = parseId(id);
  return (
    <a class="node" href={href(writeRoute(pageOf(id)))} title={`${namespace} / ${name}`}>
      <Kind kind={kind} />
      {"\u00a0"}
      <bdi>{clip(name, most)}</bdi>
    </a>
  );
}

export function LineageLink({ id, label = "Lineage" }: { id: string; label?: string }) {
  return <a href={href(writeRoute(lineageOf(id)))}>{label}</a>;
}

export function RunLink({ id }: { id: string }) {
  return (
    <a class="mono" href={href(writeRoute({ page: "run", id }))} title={id}>
      {id.slice(0, 8)}…{id.slice(-4)}
    </a>
  );
}

export function Kind({ kind }: { kind: "dataset" | "job" | "run" | "group" }) {
  return (
    <span class={`kind ${kind}`} aria-label={kind} role="img">
      {{ dataset: "▤", job: "⚙", run: "▶", group: "▣" }[kind]}
    </span>
  );
}

export function Time({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="muted">–</span>;
  return (
    <time dateTime={of} title={`${clock(of)} here, ${of} in UTC`}>
      {ago(of, now.value)}
    </time>
  );
}

const STATES: Record<State, [string, string, string]> = {
  START: ["running", "◔", "started"],
  RUNNING: ["running", "◔", "running"],
  COMPLETE: ["ok", "✓", "complete"],
  FAIL: ["bad", "✕", "failed"],
  ABORT: ["warn", "◌", "aborted"],
  OTHER: ["none", "•", "other"],
};

/** A state by shape and word as well as by colour. */
export function StateBadge({ state, brief = false }: { state: State | null | undefined; brief?: boolean }) {
  const [look, sign, word] = (state && STATES[state]) ?? ["none", "?", "unknown"];
  return (
    <span class={`state ${look}`} title={word}>
      <span aria-hidden="true">{sign}</span>
      <span class={brief ? "unseen" : ""}> {word}</span>
    </span>
  );
}

export const wordOf = (state: State | null | undefined): string => (state ? STATES[state][2] : "unknown");
