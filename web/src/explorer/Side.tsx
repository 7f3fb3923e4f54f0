// explorer/Side: the card that is chosen -> what is known of it, what it breaks, what changed, and what to hide.
import { useEffect, useState } from "preact/hooks";
import { href } from "../address.ts";
import type { Difference, Impact, Relation, Run, ShownDataset, ShownJob, ShownRun } from "../api/model.ts";
import { clip, duration, plural } from "../format.ts";
import { subjectOf } from "../lineage/picture.ts";
import { toCsv } from "../lineage/words.ts";
import { columnWay, lineageOf, pageOf } from "../nodes.ts";
import { save } from "../parts/files.ts";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink, RunLink, StateBadge, Time } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";
import { changes, drawn, setView, start, view, whole } from "./session.ts";

export function Side() {
  const { impact, versus, selected } = view.value;
  const chosen = subjectOf(drawn.value?.nodes.get(selected)) || start.value;
  return (
    <aside class="side" aria-label="Details">
      {impact && <ImpactList />}
      {versus && <DiffList />}
      {view.value.trace && <TraceList />}
      {chosen.startsWith("run:") ? <AboutRun id={chosen.slice("run:".length)} /> : <About id={chosen} />}
      <Namespaces />
    </aside>
  );
}

function About({ id }: { id: string }) {
  const asked = useAsk<ShownDataset | ShownJob>("/hw/v1/show", { node: id, at: view.value.at || undefined });
  const [words, setWords] = useState("");
  return (
    <section>
      <h2>
        <NodeLink id={id} most={34} />
      </h2>
      {id !== start.value && (
        <p>
          <a href={href(writeRoute(lineageOf(id)))}>Start from here</a>
        </p>
      )}
      <Answer of={asked}>
        {(shown) => (
          <>
            {shown.description && <p>{shown.description}</p>}
            <p class="muted">
              <bdi>{shown.namespace}</bdi> · seen <Time of={shown.lastSeen} />
              {shown.owners.length > 0 && <> · owned by {shown.owners.map((each) => each.name).join(", ")}</>}
            </p>
            {shown.type === "JOB" ? (
              <Strip runs={shown.runs} />
            ) : (
              <>
                <label class="wide">
                  <span class="unseen">Find a column</span>
                  <input
                    type="search"
                    placeholder={`Find one of ${plural(shown.fields.length, "column")}`}
                    value={words}
                    onInput={(event) => setWords(event.currentTarget.value)}
                  />
                </label>
                <ul class="fields">
                  {shown.fields
                    .filter((field) => field.name.toLowerCase().includes(words.toLowerCase()))
                    .slice(0, 60)
                    .map((field) => (
                      <li key={field.name}>
                        <a
                          href={href(writeRoute(lineageOf(shown.id)), columnWay(field.name))}
                          title="Trace it to its sources"
                        >
                          <bdi>{clip(field.name, 40)}</bdi>
                        </a>{" "}
                        <small class="muted">{clip(field.type ?? "", 24)}</small>
                      </li>
                    ))}
                </ul>
                {shown.fields.length === 0 && <Empty>No schema was told.</Empty>}
              </>
            )}
          </>
        )}
      </Answer>
    </section>
  );
}

function AboutRun({ id }: { id: string }) {
  const asked = useAsk<ShownRun>("/hw/v1/show", { node: id });
  return (
    <section>
      <h2>
        Run <RunLink id={id} />
      </h2>
      <Answer of={asked}>
        {(run) => (
          <>
            <p>
              <StateBadge state={run.state} /> {run.job && <NodeLink id={run.job} most={34} />}
            </p>
            <p class="muted">
              <Time of={run.startedAt} />, {duration(run.durationMs)}
            </p>
            {run.error && <p class="fault">{clip(run.error.split("\n")[0] ?? "", 200)}</p>}
          </>
        )}
      </Answer>
    </section>
  );
}

export function Strip({ runs }: { runs: Run[] }) {
  if (!runs.length) return <Empty>No runs.</Empty>;
  return (
    <p class="strip" role="group" aria-label="Last runs, the newest last">
      {[...runs].reverse().map((run) => (
        <a key={run.id} href={href(writeRoute({ page: "run", id: run.id }))}>
          <StateBadge state={run.state} brief />
        </a>
      ))}{" "}
      <Time of={runs[0]!.startedAt} />
    </p>
  );
}

function ImpactList() {
  const asked = useAsk<Impact>("/hw/v1/impact", {
    node: start.value,
    column: view.value.column || undefined,
    at: view.value.at || undefined,
  });
  return (
    <section>
      <h2>What it breaks</h2>
      <Answer of={asked}>
        {(impact) => (
          <>
            <p>
              {plural(impact.counts.datasets, "dataset")}, {plural(impact.counts.jobs, "job")},{" "}
              {plural(impact.owners.length, "owner")}
              {impact.unsure.length > 0 && <>, {plural(impact.unsure.length, "job")} unsure</>}
            </p>
            <ol class="ranked">
              {[...impact.datasets, ...impact.jobs].slice(0, 200).map((each) => (
                <li key={each.id}>
                  <NodeLink id={each.id} most={30} />{" "}
                  <small class="muted">{plural(each.distance, "hop")}</small>{" "}
                  {each.lastRun && <StateBadge state={each.lastRun.state} brief />}
                </li>
              ))}
            </ol>
            <button
              type="button"
              onClick={() =>
                save(
                  "impact.csv",
                  toCsv([
                    ["id", "type", "hops", "owners", "last run", "path"],
                    ...[...impact.datasets, ...impact.jobs].map((each) => [
                      each.id,
                      each.type,
                      each.distance,
                      each.owners.map((owner) => owner.name).join(" "),
                      each.lastRun?.state ?? "",
                      each.path.join(" > "),
                    ]),
                  ]),
                  "text/csv",
                )
              }
            >
              Save as CSV
            </button>
          </>
        )}
      </Answer>
    </section>
  );
}

function DiffList() {
  const { versus, at } = view.value;
  const asked = useAsk<Difference>("/hw/v1/diff", {
    from: versus,
    to: at || "now",
    node: start.value,
    depth: Math.max(view.value.up, view.value.down, 1),
  });
  useEffect(() => {
    changes.value = asked.data ?? null;
  }, [asked.data]);
  return (
    <section>
      <h2>What changed</h2>
      <Answer of={asked}>
        {(diff) => {
          const rows: [string, string, string][] = [
            ...diff.edges.added.map((edge): [string, string, string] => [
              "added",
              "new edge",
              `${tail(edge.from)} → ${tail(edge.to)}`,
            ]),
            ...diff.edges.removed.map((edge): [string, string, string] => [
              "removed",
              "lost edge",
              `${tail(edge.from)} → ${tail(edge.to)}`,
            ]),
            ...diff.schemas.map((each): [string, string, string] => [
              "changed",
              each.breaking ? "breaking schema" : `schema ${each.change}`,
              tail(each.dataset),
            ]),
            ...diff.columns.added.map((each): [string, string, string] => [
              "added",
              "column line",
              `${each.from.field} → ${each.to.field} in ${tail(each.to.dataset)}`,
            ]),
            ...diff.columns.removed.map((each): [string, string, string] => [
              "removed",
              "column line",
              `${each.from.field} → ${each.to.field} in ${tail(each.to.dataset)}`,
            ]),
          ];
          if (!rows.length) return <Empty>Nothing differs between these times.</Empty>;
          return (
            <ul class="changes">
              {rows.slice(0, 300).map(([look, what, which], index) => (
                <li key={index}>
                  <span class={look}>{{ added: "+", removed: "−", changed: "~" }[look]}</span> {what}:{" "}
                  <bdi>{clip(which, 80)}</bdi>
                </li>
              ))}
              {rows.length > 300 && <li class="muted">and {rows.length - 300} more</li>}
            </ul>
          );
        }}
      </Answer>
    </section>
  );
}

const tail = (id: string): string => id.slice(id.lastIndexOf(":") + 1);

function TraceList() {
  const trace = view.value.trace!;
  const near = (drawn.value?.columns ?? []).filter((each) => touches(each, trace));
  return (
    <section>
      <h2>
        Column <bdi>{clip(trace.field, 40)}</bdi>
      </h2>
      <p>
        <a href={href(writeRoute(lineageOf(trace.dataset)), columnWay(trace.field))}>
          Follow it to its sources
        </a>{" "}
        · <a href={href(writeRoute(pageOf(trace.dataset)))}>its dataset</a>
      </p>
      <ul class="changes">
        {near.map((each, at) => (
          <li key={at}>
            <bdi>
              {tail(each.from.dataset)}.{each.from.field}
            </bdi>{" "}
            →{" "}
            <bdi>
              {tail(each.to.dataset)}.{each.to.field}
            </bdi>
            <br />
            <small class="muted">{each.kinds.join(", ")}</small>
            {each.descriptions.map((text) => (
              <code key={text}>{clip(text, 200)}</code>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

function touches(each: Relation, at: { dataset: string; field: string }): boolean {
  return (
    (each.to.dataset === at.dataset && each.to.field === at.field) ||
    (each.from.dataset === at.dataset && each.from.field === at.field)
  );
}

/** Namespaces in the picture, to hide or to fold. */
function Namespaces() {
  const all = whole.value?.drawn;
  if (!all) return null;
  const counts = new Map<string, number>();
  for (const node of all.nodes.values())
    if (node.namespace !== undefined) counts.set(node.namespace, (counts.get(node.namespace) ?? 0) + 1);
  const { hidden, folded } = view.value;
  const isHidden = (ns: string) => hidden.some((each) => each.kind === "ns" && each.value === ns);
  const words = hidden.find((each) => each.kind === "name")?.value ?? "";
  return (
    <section>
      <h2>Filter</h2>
      <label class="wide">
        <span class="unseen">Hide names that contain</span>
        <input
          type="search"
          placeholder="Hide names that contain…"
          value={words}
          onChange={(event) => {
            const value = event.currentTarget.value.trim();
            setView({
              hidden: [
                ...hidden.filter((each) => each.kind !== "name"),
                ...(value ? [{ kind: "name" as const, value }] : []),
              ],
            });
          }}
        />
      </label>
      <p class="tabs">
        {(["job", "dataset"] as const).map((kind) => {
          const on = hidden.some((each) => each.kind === "type" && each.value === kind);
          const rest = hidden.filter((each) => each.kind !== "type" || each.value !== kind);
          return (
            <button
              key={kind}
              type="button"
              aria-pressed={on}
              onClick={() =>
                setView({ hidden: on ? rest : [...rest, { kind: "type" as const, value: kind }] })
              }
            >
              Hide {kind}s
            </button>
          );
        })}
      </p>
      <ul class="namespaces">
        {[...counts]
          .sort((a, b) => b[1] - a[1])
          .map(([ns, count]) => (
            <li key={ns}>
              <bdi title={ns}>{clip(ns, 28)}</bdi> <small class="muted">{count}</small>
              <span>
                <button
                  type="button"
                  aria-pressed={folded.includes(ns)}
                  onClick={() =>
                    setView({
                      folded: folded.includes(ns) ? folded.filter((each) => each !== ns) : [...folded, ns],
                    })
                  }
                >
                  Fold
                </button>
                <button
                  type="button"
                  aria-pressed={isHidden(ns)}
                  onClick={() =>
                    setView({
                      hidden: isHidden(ns)
                        ? hidden.filter((each) => each.kind !== "ns" || each.value !== ns)
                        : [...hidden, { kind: "ns", value: ns }],
                    })
                  }
                >
                  Hide
                </button>
              </span>
            </li>
          ))}
      </ul>
    </section>
  );
}
