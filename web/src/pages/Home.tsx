// pages/Home: search first; below it what is broken, what failed, what changed, and how events come in.
import { useEffect } from "preact/hooks";
import { href } from "../address.ts";
import type { Difference, Hit, IncidentLine, Run, Server, Status } from "../api/model.ts";
import { bytes, clip, clock, count, plural } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { useNews } from "../parts/News.tsx";
import { Search } from "../parts/Search.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { LineageLink, NodeLink, RunLink, StateBadge, Time } from "../parts/Words.tsx";
import { IncidentRow } from "./Incidents.tsx";

export function Home() {
  useTitle("");
  const news = useNews();
  const status = useAsk<Status>("/hw/v1/status");
  const incidents = useAsk<{ incidents: IncidentLine[]; total: number }>("/hw/v1/incidents", { limit: 5 });
  const failed = useAsk<Run[]>("/hw/v1/runs", { state: "FAIL", limit: 5 });
  const changed = useAsk<Difference>("/hw/v1/diff", { from: "-24h", to: "now" });
  const newest = useAsk<Hit[]>("/hw/v1/search", { q: "", type: "dataset", limit: 8 });
  const server = useAsk<Server>("/hw/v1/server");
  // asks anew when something came in
  useEffect(() => {
    if (news) for (const each of [status, incidents, failed, changed]) each.again();
  }, [news]);
  return (
    <div class="page home">
      <h1>Where does it come from, and what breaks with it?</h1>
      <Search big />
      <div class="tiles">
        <section>
          <h2>
            <a href={href("/incidents")}>Open incidents</a>
          </h2>
          <Answer of={incidents}>
            {({ incidents: found, total }) =>
              found.length ? (
                <>
                  <ul class="plain">
                    {found.map((each) => (
                      <li key={each.id}>
                        <IncidentRow of={each} />
                      </li>
                    ))}
                  </ul>
                  {total > found.length && <a href={href("/incidents")}>{total - found.length} more</a>}
                </>
              ) : (
                <Empty>Nothing is broken.</Empty>
              )
            }
          </Answer>
        </section>
        <section>
          <h2>
            <a href={href("/runs", { state: "FAIL" })}>Failed runs</a>
          </h2>
          <Answer of={failed}>
            {(runs) =>
              runs.length ? (
                <ul class="plain">
                  {runs.map((run) => (
                    <li key={run.id}>
                      <StateBadge state={run.state} brief />{" "}
                      {run.job ? <NodeLink id={run.job} most={36} /> : "?"} <RunLink id={run.id} />{" "}
                      <Time of={run.startedAt} />
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty>No run has failed.</Empty>
              )
            }
          </Answer>
        </section>
        <section>
          <h2>Changed in 24 hours</h2>
          <Answer of={changed}>
            {(diff) => {
              const nodes = [
                ...diff.nodes.added.map((id) => ["added", id]),
                ...diff.nodes.removed.map((id) => ["removed", id]),
                ...diff.schemas.map((each) => ["changed", each.dataset]),
              ] as [string, string][];
              return nodes.length ? (
                <ul class="plain">
                  {nodes.slice(0, 8).map(([look, id]) => (
                    <li key={look + id}>
                      <span class={look}>{{ added: "+", removed: "−", changed: "~" }[look]}</span>{" "}
                      <NodeLink id={id} most={36} />
                    </li>
                  ))}
                  {nodes.length > 8 && <li class="muted">and {nodes.length - 8} more</li>}
                </ul>
              ) : (
                <Empty>Lineage is as it was yesterday.</Empty>
              );
            }}
          </Answer>
        </section>
        <section>
          <h2>
            <a href={href("/events")}>Events</a>
          </h2>
          <Answer of={status}>
            {(all) => (
              <>
                <dl class="facts">
                  <dt>received</dt>
                  <dd>{count(all.events)}</dd>
                  <dt>last one</dt>
                  <dd>
                    <Time of={all.lastEvent} />
                  </dd>
                  <dt>refused</dt>
                  <dd>
                    <a href={href("/rejected")}>{count(all.rejects)}</a>
                  </dd>
                  <dt>known</dt>
                  <dd>
                    {plural(all.datasets, "dataset")}, {plural(all.jobs, "job")}, {plural(all.runs, "run")}
                  </dd>
                </dl>
                {all.events === 0 && (
                  <p>
                    <a href={href("/start")}>Send the first one</a>
                  </p>
                )}
              </>
            )}
          </Answer>
          <Hours news={news} />
          <Behind news={news} />
          {server.data && (
            <p class="muted">
              {server.data.intake.requests
                ? `${plural(server.data.intake.requests, "request")} wait (${bytes(server.data.intake.bytes)})`
                : "nothing waits to be written"}
              {server.data.read_only && " · read only"}
            </p>
          )}
        </section>
        <section class="broad">
          <h2>
            <a href={href("/datasets")}>Datasets</a>
          </h2>
          <Answer of={newest}>
            {(hits) =>
              hits.length ? (
                <ul class="plain">
                  {hits.map((hit) => (
                    <li key={hit.id}>
                      <NodeLink id={hit.id} most={50} />{" "}
                      <small class="muted">
                        <bdi>{clip(hit.namespace, 40)}</bdi>
                      </small>{" "}
                      <LineageLink id={hit.id} />
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty>
                  None yet. <a href={href("/start")}>Use your own data</a>, or run <code>headwater demo</code>
                  .
                </Empty>
              )
            }
          </Answer>
        </section>
      </div>
    </div>
  );
}

interface Hour {
  startInterval: string;
  start: number;
  complete: number;
  fail: number;
  abort: number;
}

/** How many events of runs came in each hour of the last day. */
function Hours({ news }: { news: number }) {
  const asked = useAsk<Hour[]>("/api/v1/stats/lineage-events", { period: "DAY", timezone: "UTC" });
  useEffect(() => {
    if (news) asked.again();
  }, [news]);
  const hours = (asked.data ?? []).slice(-24);
  const sums = hours.map(({ start, complete, fail, abort }) => start + complete + fail + abort);
  const [most, all] = [Math.max(1, ...sums), sums.reduce((a, b) => a + b, 0)];
  return (
    <div class="hours" role="img" aria-label={`${plural(all, "event")} of runs in the last 24 hours`}>
      {hours.map((hour, at) => (
        <span
          key={hour.startInterval}
          class={hour.fail ? "bad" : ""}
          title={`${clock(hour.startInterval)}: ${plural(sums[at]!, "event")}${hour.fail ? `, ${hour.fail} failed` : ""}`}
          style={{ height: sums[at] ? `${Math.max(8, (sums[at]! / most) * 100)}%` : "1px" }}
        />
      ))}
    </div>
  );
}

interface Delivery {
  name: string;
  lag: { entries: number; seconds: number };
  refused: number;
  fault: { reason: string; since: string } | null;
}

/** Whether what is passed on to another catalogue keeps up. */
function Behind({ news }: { news: number }) {
  const asked = useAsk<Delivery[]>("/hw/v1/deliveries");
  useEffect(() => {
    if (news) asked.again();
  }, [news]);
  return (
    <>
      {(asked.data ?? []).map((each) => (
        <p key={each.name}>
          <a href={href("/admin", { tab: "deliveries" })}>DataHub</a>{" "}
          {each.fault ? (
            <span class="state bad">
              ✕ held up since <Time of={each.fault.since} />
            </span>
          ) : each.lag.entries ? (
            `${plural(each.lag.entries, "entry", "entries")} behind`
          ) : (
            <span class="state ok">✓ up to date</span>
          )}
          {each.refused > 0 && <>, {plural(each.refused, "proposal")} refused</>}
        </p>
      ))}
    </>
  );
}
