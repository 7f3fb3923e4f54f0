// pages/Job: a job -> its runs as a chart and a list, what it reads and writes, its SQL and source, versions, facets.
import { href, query } from "../address.ts";
import type { Run, ShownJob } from "../api/model.ts";
import { clip, duration, plural } from "../format.ts";
import { nodeId } from "../nodes.ts";
import { useTitle } from "../parts/Frame.tsx";
import { useFresh } from "../parts/News.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink, Time, wordOf } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";
import { EventList } from "./Events.tsx";
import { Facets, told } from "./Facets.tsx";
import { Edit, Head, Tabs } from "./Head.tsx";
import { RunRows } from "./Runs.tsx";

const TABS = ["runs", "data", "code", "versions", "events", "facets"];

export function Job({ namespace, name }: { namespace: string; name: string }) {
  useTitle(clip(name, 60));
  const id = nodeId("job", namespace, name);
  const asked = useAsk<ShownJob>("/hw/v1/show", { node: id });
  useFresh(asked, (entry) => entry.job === id);
  const tab = query.value.get("tab") ?? "runs";
  return (
    <div class="page">
      <Answer of={asked}>
        {(shown) => (
          <>
            <Head of={shown} kind="job" />
            <Edit of={shown} done={asked.again} />
            {shown.parent && (
              <p class="muted">
                Part of <NodeLink id={shown.parent} />
              </p>
            )}
            <Tabs names={TABS} at={tab} />
            {tab === "runs" && <JobRuns id={shown.id} />}
            {tab === "data" && <Data of={shown} />}
            {tab === "code" && <Code of={shown} />}
            {tab === "versions" && <Versions of={shown} />}
            {tab === "events" && <EventList parameters={{ job: shown.id }} />}
            {tab === "facets" && <Facets of={shown.facets} />}
          </>
        )}
      </Answer>
    </div>
  );
}

function JobRuns({ id }: { id: string }) {
  const asked = useAsk<Run[]>("/hw/v1/runs", { job: id, limit: 200 });
  useFresh(asked, (entry) => entry.job === id);
  return (
    <Answer of={asked}>
      {(runs) =>
        runs.length ? (
          <>
            <Chart runs={runs} />
            <RunRows runs={runs} />
          </>
        ) : (
          <Empty>It never ran by itself; its parts may have.</Empty>
        )
      }
    </Answer>
  );
}

/** Durations as bars, the newest at the right; states by colour and by what a bar says. */
export function Chart({ runs }: { runs: Run[] }) {
  const shown = [...runs].reverse().slice(-100);
  const most = Math.max(1, ...shown.map((run) => run.durationMs ?? 0));
  return (
    <div
      class="chart"
      role="group"
      aria-label={`Durations of the last ${plural(shown.length, "run")}, up to ${duration(most)}`}
    >
      {shown.map((run) => (
        <a
          key={run.id}
          class={
            {
              COMPLETE: "ok",
              FAIL: "bad",
              ABORT: "warn",
              START: "running",
              RUNNING: "running",
              OTHER: "none",
            }[run.state ?? "OTHER"]
          }
          href={href(writeRoute({ page: "run", id: run.id }))}
          aria-label={`${wordOf(run.state)}, ${duration(run.durationMs)}`}
          title={`${wordOf(run.state)}, ${duration(run.durationMs)}`}
          style={{ height: `${Math.max(6, ((run.durationMs ?? 0) / most) * 100)}%` }}
        />
      ))}
    </div>
  );
}

function Data({ of }: { of: ShownJob }) {
  return (
    <div class="two">
      {(["inputs", "outputs"] as const).map((side) => (
        <section key={side}>
          <h2>{side === "inputs" ? "Reads" : "Writes"}</h2>
          {of[side].length ? (
            <ul class="plain">
              {of[side].map((id) => (
                <li key={id}>
                  <NodeLink id={id} most={70} />
                </li>
              ))}
            </ul>
          ) : (
            <Empty>Nothing is known.</Empty>
          )}
        </section>
      ))}
    </div>
  );
}

function Code({ of }: { of: ShownJob }) {
  const sql = told(of.facets, "sql", "query");
  const source = told(of.facets, "sourceCode", "sourceCode");
  const link = told(of.facets, "sourceCodeLocation", "url");
  if (!sql && !source && !link) return <Empty>Neither SQL nor source code was told.</Empty>;
  return (
    <>
      {/^https?:\/\//.test(link) && (
        <p>
          <a href={link} target="_blank" rel="noreferrer noopener">
            {link}
          </a>
        </p>
      )}
      {[sql, source].filter(Boolean).map((text) => (
        <pre key={text} tabIndex={0}>
          {text}
        </pre>
      ))}
    </>
  );
}

function Versions({ of }: { of: ShownJob }) {
  if (!of.versions.length) return <Empty>No completed run has named datasets yet.</Empty>;
  return (
    <ul class="plain">
      {of.versions.map((each) => (
        <li key={each.version}>
          <code>{each.version.slice(0, 12)}</code> from <Time of={each.firstSeen} /> until{" "}
          <Time of={each.lastSeen} />, {plural(each.runs, "run")}
        </li>
      ))}
    </ul>
  );
}
