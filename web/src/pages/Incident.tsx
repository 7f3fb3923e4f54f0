// pages/Incident: one incident -> one sentence, the runs on a clock, suspects with reasons, cause and impact in one graph, decisions.
import { useState } from "preact/hooks";
import { href } from "../address.ts";
import { Problem, tell } from "../api/client.ts";
import type { Incident as Model } from "../api/model.ts";
import { clip, clock, plural } from "../format.ts";
import { columnWay, lineageOf, parseId } from "../nodes.ts";
import { useTitle } from "../parts/Frame.tsx";
import { Json } from "../parts/Json.tsx";
import { useFresh } from "../parts/News.tsx";
import { Answer, Empty, Fault } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink, RunLink, StateBadge, Time } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";
import { useMayChange } from "./Head.tsx";
import { StatusBadge, whatFailed } from "./Incidents.tsx";
import { Small } from "./Small.tsx";

export function IncidentPage({ id }: { id: string }) {
  const asked = useAsk<Model>(`/hw/v1/incidents/${encodeURIComponent(id)}`);
  useFresh(asked, () => true);
  useTitle(asked.data ? clip(whatFailed(asked.data), 60) : "Incident");
  return (
    <div class="page">
      <Answer of={asked}>
        {(incident) => {
          const subject = incident.dataset ?? incident.job ?? "";
          return (
            <>
              <header class="head">
                <h1>
                  <bdi>{clip(whatFailed(incident), 160)}</bdi>
                </h1>
                <p class="sentence">{sentence(incident)}</p>
                <p>
                  <StatusBadge status={incident.status} />{" "}
                  {incident.severity && <span class="badge">{incident.severity}</span>}{" "}
                  {subject && <NodeLink id={subject} />}{" "}
                  {subject && (
                    <a
                      href={href(
                        writeRoute(lineageOf(subject)),
                        incident.column ? columnWay(incident.column) : { up: "3", runs: "1" },
                      )}
                    >
                      Open in the explorer
                    </a>
                  )}
                </p>
              </header>
              <Decide of={incident} done={asked.again} />
              {incident.message && <p class="fault">{incident.message}</p>}
              <Clock of={incident} />
              <section>
                <h2>Blamed</h2>
                {incident.blamed ? (
                  <p>
                    <StateBadge state={incident.blamed.state} />{" "}
                    {incident.blamed.job && <NodeLink id={incident.blamed.job} />}{" "}
                    <RunLink id={incident.blamed.runId} /> ended <Time of={incident.blamed.endedAt} />
                  </p>
                ) : (
                  <Empty>
                    Nobody is known to write it. Often two tools call it by two names:{" "}
                    <a href={href("/admin")}>Admin</a> suggests rules that join them.
                  </Empty>
                )}
              </section>
              <section>
                <h2>Suspects</h2>
                {incident.suspects.length ? (
                  <ol class="ranked">
                    {incident.suspects.map((each) => (
                      <li key={each.runId}>
                        <meter
                          min={0}
                          max={10}
                          low={3}
                          high={6}
                          optimum={0}
                          value={each.score}
                          aria-label="How much speaks against it"
                          title={`score ${each.score}`}
                        />{" "}
                        {each.job && <NodeLink id={each.job} most={50} />} <RunLink id={each.runId} />{" "}
                        <Time of={each.endedAt} />
                        <div class="muted">{each.reasons.join(" · ")}</div>
                      </li>
                    ))}
                  </ol>
                ) : (
                  <Empty>No run upstream is suspect.</Empty>
                )}
              </section>
              <section>
                <h2>Cause, symptom, impact</h2>
                <Small incident={incident} />
                <p>
                  {plural(incident.impact.datasets.length, "dataset")} and{" "}
                  {plural(incident.impact.jobs.length, "job")} downstream
                </p>
                <ul class="plain">
                  {incident.impact.datasets.map((each) => (
                    <li key={each.id}>
                      <NodeLink id={each.id} /> <small class="muted">{plural(each.distance, "hop")}</small>{" "}
                      {each.columns?.length ? (
                        <small class="muted">columns {each.columns.join(", ")}</small>
                      ) : null}
                    </li>
                  ))}
                </ul>
              </section>
              <section>
                <h2>What was decided</h2>
                {incident.history.length ? (
                  <ul class="plain">
                    {incident.history.map((each, at) => (
                      <li key={at}>
                        <Time of={each.at} /> {each.by} {each.status || "noted"}{" "}
                        {each.reason && <>“{each.reason}”</>} {each.note && <>“{each.note}”</>}
                      </li>
                    ))}
                  </ul>
                ) : (
                  <Empty>Nothing yet.</Empty>
                )}
              </section>
              <details>
                <summary>What the test said</summary>
                <Json value={incident.details} />
              </details>
            </>
          );
        }}
      </Answer>
    </div>
  );
}

export function sentence(of: Model): string {
  const first = of.blamed
    ? `; first suspect: ${parseId(of.blamed.job ?? "job:?:a run").name}, which ended ${clock(of.blamed.endedAt)}`
    : "";
  return `${whatFailed(of)} ${of.status === "resolved" ? "failed" : "fails"} since ${clock(of.openedAt)}${first}.`;
}

function Decide({ of, done }: { of: Model; done: () => void }) {
  const may = useMayChange();
  const [reason, setReason] = useState("");
  const [days, setDays] = useState(7);
  const [fault, setFault] = useState<Problem | null>(null);
  if (!may) return null;
  const decide = (status: string) =>
    tell("PATCH", `/hw/v1/incidents/${of.id}`, {
      status,
      ...(reason ? { reason } : {}),
      ...(status === "muted" ? { days } : {}),
    }).then(
      () => {
        setReason("");
        setFault(null);
        done();
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  return (
    <form class="filters decide" onSubmit={(event) => event.preventDefault()}>
      <label>
        Reason <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      {of.status === "open" && (
        <button type="button" onClick={() => decide("acknowledged")}>
          Acknowledge
        </button>
      )}
      {of.status !== "resolved" && (
        <button type="button" class="strong" onClick={() => decide("resolved")}>
          Resolve
        </button>
      )}
      {of.status !== "muted" && of.status !== "resolved" && (
        <>
          <label>
            for{" "}
            <input
              type="number"
              min={1}
              max={3650}
              value={days}
              onInput={(event) => setDays(Number(event.currentTarget.value))}
            />{" "}
            days
          </label>
          <button type="button" onClick={() => decide("muted")}>
            Mute
          </button>
        </>
      )}
      {of.status !== "open" && (
        <button type="button" onClick={() => decide("open")}>
          Reopen
        </button>
      )}
      {fault && <Fault fault={fault} />}
    </form>
  );
}

/** Runs, failures and decisions on one axis. */
function Clock({ of }: { of: Model }) {
  const marks = [
    ...of.suspects.map((each) => ({
      at: each.endedAt,
      look: "running",
      what: `${parseId(each.job ?? "job:?:a run").name} ended`,
    })),
    ...of.runs.map((each) => ({ at: each.at, look: "bad", what: "failed" })),
    ...(of.passedAt ? [{ at: of.passedAt, look: "ok", what: "passed" }] : []),
    ...of.history.map((each) => ({ at: each.at, look: "none", what: each.status || "note" })),
  ].filter((each): each is { at: string; look: string; what: string } => Boolean(each.at));
  const times = marks.map((each) => Date.parse(each.at));
  const begin = Math.min(...times);
  const end = Math.max(begin + 60_000, ...of.runs.map((each) => Date.parse(each.at)));
  const shown = marks.filter((each) => Date.parse(each.at) <= end);
  if (!shown.length) return null;
  return (
    <figure
      class="clock"
      aria-label={`From ${clock(new Date(begin).toISOString())} to ${clock(new Date(end).toISOString())}`}
    >
      <span class="track">
        {shown.map((each, at) => (
          <span
            key={at}
            class={each.look}
            style={{ left: `${((Date.parse(each.at) - begin) / (end - begin)) * 100}%` }}
            title={`${clock(each.at)} ${each.what}`}
          />
        ))}
      </span>
      <figcaption class="muted">
        {clock(new Date(begin).toISOString())} – {clock(new Date(end).toISOString())}:{" "}
        {plural(of.suspects.length, "run")} upstream, then the failure
      </figcaption>
    </figure>
  );
}
