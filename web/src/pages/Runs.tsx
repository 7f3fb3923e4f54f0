// pages/Runs: runs by job, state and time -> a list; a run -> when it ran, what it belongs to, what it moved, what went wrong.
import { query, say } from "../address.ts";
import type { Graph, Moved, Run, ShownRun, State } from "../api/model.ts";
import { bytes, clock, count, duration } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { useFresh } from "../parts/News.tsx";
import { Rows } from "../parts/Rows.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { LineageLink, NodeLink, RunLink, StateBadge, Time } from "../parts/Words.tsx";
import { EventList } from "./Events.tsx";
import { Facets } from "./Facets.tsx";
import { Tabs } from "./Head.tsx";

const STATES: State[] = ["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"];

export function Runs() {
  useTitle("Runs");
  const said = (name: string) => query.value.get(name) ?? "";
  const asked = useAsk<Run[]>("/hw/v1/runs", {
    job: said("job"),
    dataset: said("dataset"),
    state: said("state"),
    since: said("from"),
    until: said("to"),
    limit: 1000,
  });
  useFresh(asked, (entry) => entry.kind === "run");
  return (
    <div class="page">
      <h1>Runs</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          state{" "}
          <select value={said("state")} onChange={(event) => say({ state: event.currentTarget.value })}>
            <option value="">any</option>
            {STATES.map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        </label>
        {["job", "dataset", "from", "to"].map((name) => (
          <label key={name}>
            {name}{" "}
            <input
              type="search"
              placeholder={/from|to/.test(name) ? "-24h, 2026-01-31" : ""}
              value={said(name)}
              onChange={(event) => say({ [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      </form>
      <Answer of={asked} rows={10}>
        {(runs) => (runs.length ? <RunRows runs={runs} withJob /> : <Empty>No run fits.</Empty>)}
      </Answer>
    </div>
  );
}

export function RunRows({
  runs,
  withJob = false,
  role,
}: {
  runs: Run[];
  withJob?: boolean;
  /** What a job's runs did here. */
  role?: (job: string | null) => string;
}) {
  return (
    <Rows
      items={runs}
      height={40}
      label="Runs, the newest first"
      row={(run) => (
        <>
          <span class="cell">
            <StateBadge state={run.state} />
          </span>
          {role && <span class="cell role muted">{role(run.job)}</span>}
          {withJob && <span class="grow">{run.job ? <NodeLink id={run.job} most={70} /> : "?"}</span>}
          <span class="cell">
            <RunLink id={run.id} />
          </span>
          <span class="cell">
            <Time of={run.startedAt} />
          </span>
          <span class="cell">{duration(run.durationMs)}</span>
          {!withJob && <span class="grow bad">{run.error?.split("\n")[0] ?? ""}</span>}
        </>
      )}
    />
  );
}

export function RunPage({ id }: { id: string }) {
  useTitle(`Run ${id.slice(0, 8)}`);
  const asked = useAsk<ShownRun>("/hw/v1/show", { node: id });
  useFresh(asked, (entry) => entry.run === id);
  const tab = query.value.get("tab") ?? "data";
  return (
    <div class="page">
      <Answer of={asked}>
        {(run) => (
          <>
            <header class="head">
              <p class="muted mono">{run.id}</p>
              <h1>
                <StateBadge state={run.state} /> {run.job && <NodeLink id={run.job} most={80} />}
              </h1>
              <p class="muted">
                {clock(run.startedAt)} – {clock(run.endedAt)}, {duration(run.durationMs)}
                {run.nominalStart && <>, for {clock(run.nominalStart)}</>}
              </p>
            </header>
            {run.error && <Failure text={run.error} />}
            <Timeline run={run} />
            <Tabs names={["data", "around", "tests", "events", "facets"]} at={tab} />
            {tab === "data" && (
              <div class="two">
                <Data title="Read" rows={run.inputs} />
                <Data title="Wrote" rows={run.outputs} />
              </div>
            )}
            {tab === "around" && <Around id={run.id} />}
            {tab === "tests" &&
              (run.assertions.length ? (
                <ul class="plain">
                  {run.assertions.map((each, at) => (
                    <li key={at}>
                      <span class={`state ${each.success ? "ok" : "bad"}`}>
                        {each.success ? "✓ passed" : "✕ failed"}
                      </span>{" "}
                      {each.assertion}
                      {each.column ? `(${each.column})` : ""}
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty>It tested nothing.</Empty>
              ))}
            {tab === "events" && <EventList parameters={{ run: run.id }} />}
            {tab === "facets" && <Facets of={run.facets} />}
          </>
        )}
      </Answer>
    </div>
  );
}

function Failure({ text }: { text: string }) {
  const [first, ...rest] = text.split("\n");
  return (
    <div class="fault">
      <p>
        <strong>{first}</strong>
      </p>
      {rest.length > 0 && (
        <details>
          <summary>The rest of it</summary>
          <pre>{rest.join("\n")}</pre>
        </details>
      )}
    </div>
  );
}

function Data({ title, rows }: { title: string; rows: Moved[] }) {
  return (
    <section>
      <h2>{title}</h2>
      {rows.length ? (
        <ul class="plain">
          {rows.map((each) => (
            <li key={each.dataset}>
              <NodeLink id={each.dataset} most={60} /> <LineageLink id={each.dataset} />
              <div class="muted">
                {each.rows !== undefined && <>{count(each.rows)} rows </>}
                {each.bytes !== undefined && <>{bytes(each.bytes)} </>}
                {each.files !== undefined && <>{count(each.files)} files</>}
              </div>
            </li>
          ))}
        </ul>
      ) : (
        <Empty>Nothing was named.</Empty>
      )}
    </section>
  );
}

/** The run under the runs it is a part of and above its own parts, on one axis. */
function Timeline({ run }: { run: ShownRun }) {
  const parent = useAsk<ShownRun>(run.parent ? "/hw/v1/show" : null, { node: run.parent });
  const root = useAsk<ShownRun>(run.root && run.root !== run.parent ? "/hw/v1/show" : null, {
    node: run.root,
  });
  const family: (Run | undefined)[] = [root.data, parent.data, run, ...run.children.slice(0, 30)];
  const bars = family.filter((each): each is Run => Boolean(each?.startedAt));
  if (bars.length < 2) return null;
  const begin = Math.min(...bars.map((each) => Date.parse(each.startedAt!)));
  const end = Math.max(begin + 1, ...bars.map((each) => Date.parse(each.endedAt ?? each.startedAt!)));
  return (
    <div
      class="timeline"
      role="group"
      aria-label="When it ran, below what it is a part of and above its parts"
    >
      {bars.map((each) => {
        const left = ((Date.parse(each.startedAt!) - begin) / (end - begin)) * 100;
        const wide =
          ((Date.parse(each.endedAt ?? each.startedAt!) - Date.parse(each.startedAt!)) / (end - begin)) * 100;
        return (
          <div key={each.id}>
            <span>
              {each.job ? <NodeLink id={each.job} most={40} /> : ""} <RunLink id={each.id} />
            </span>
            <span class="track">
              <span
                class={each.state === "FAIL" ? "bad" : "ok"}
                style={{ left: `${left}%`, width: `${Math.max(0.5, wide)}%` }}
                title={duration(each.durationMs)}
              />
            </span>
          </div>
        );
      })}
    </div>
  );
}

function Around({ id }: { id: string }) {
  const asked = useAsk<Graph>(`/hw/v1/runs/${encodeURIComponent(id)}/graph`, { depth: 3 });
  return (
    <Answer of={asked}>
      {(graph) => {
        const runs = graph.nodes.filter((node) => node.type === "RUN" && node.id !== graph.start);
        return runs.length ? (
          <>
            <p class="muted">Runs that its data came from, or went to.</p>
            <ul class="plain">
              {runs.map((node) => (
                <li key={node.id}>
                  <StateBadge state={node.state} brief /> {node.job && <NodeLink id={node.job} most={60} />}{" "}
                  <RunLink id={node.id.slice(4)} /> <Time of={node.startedAt} />
                </li>
              ))}
            </ul>
          </>
        ) : (
          <Empty>No other run is known to have written what it read, or read what it wrote.</Empty>
        );
      }}
    </Answer>
  );
}
