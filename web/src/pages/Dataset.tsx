// pages/Dataset: a dataset -> its schema now and before, columns, who writes and reads it, tests, names, facets.
import { href, query, say } from "../address.ts";
import type { IncidentLine, Relation, Run, SchemaField, SchemaVersion, ShownDataset } from "../api/model.ts";
import { Strip } from "../explorer/Side.tsx";
import { clip, plural } from "../format.ts";
import { columnWay, lineageOf, nodeId, parseId } from "../nodes.ts";
import { useTitle } from "../parts/Frame.tsx";
import { useFresh } from "../parts/News.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink, RunLink, Time } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";
import { EventList } from "./Events.tsx";
import { Facets } from "./Facets.tsx";
import { Edit, Head, Tabs } from "./Head.tsx";
import { RunRows } from "./Runs.tsx";

const TABS = ["schema", "history", "jobs", "runs", "tests", "events", "facets"];

export function Dataset({ namespace, name }: { namespace: string; name: string }) {
  useTitle(clip(name, 60));
  const id = nodeId("dataset", namespace, name);
  const asked = useAsk<ShownDataset>("/hw/v1/show", { node: id });
  useFresh(asked, (entry) => [...(entry.inputs ?? []), ...(entry.outputs ?? [])].includes(id));
  const tab = query.value.get("tab") ?? "schema";
  return (
    <div class="page">
      <Answer of={asked}>
        {(shown) => (
          <>
            <Head of={shown} kind="dataset" />
            <Edit of={shown} done={asked.again} />
            {shown.aliases.length > 0 && (
              <p class="muted">
                Also called{" "}
                {shown.aliases.map((each) => (
                  <code key={each}>{each}</code>
                ))}
              </p>
            )}
            <Tabs names={TABS} at={tab} />
            {tab === "schema" && <Schema of={shown} />}
            {tab === "history" && <History id={shown.id} />}
            {tab === "jobs" && <Jobs of={shown} />}
            {tab === "runs" && <TouchedBy of={shown} />}
            {tab === "tests" && <Tests of={shown} />}
            {tab === "events" && <EventList parameters={{ dataset: shown.id }} />}
            {tab === "facets" && <Facets of={shown.facets} />}
          </>
        )}
      </Answer>
    </div>
  );
}

function Schema({ of }: { of: ShownDataset }) {
  const graph = useAsk<{ columns: Relation[] }>("/hw/v1/graph", {
    node: of.id,
    direction: "up",
    depth: 1,
    columns: true,
  });
  const words = (query.value.get("column") ?? "").toLowerCase();
  const fields = flat(of.fields).filter((field) => field.name.toLowerCase().includes(words));
  const sources = new Map<string, Relation[]>();
  for (const each of graph.data?.columns ?? [])
    if (each.to.dataset === of.id) sources.set(each.to.field, [...(sources.get(each.to.field) ?? []), each]);
  if (!of.fields.length) return <Empty>No schema was told of it.</Empty>;
  return (
    <>
      <label>
        Column{" "}
        <input
          type="search"
          value={query.value.get("column") ?? ""}
          onInput={(event) => say({ column: event.currentTarget.value })}
        />
      </label>{" "}
      <span class="muted">
        {fields.length} of {plural(flat(of.fields).length, "column")}
      </span>
      <div class="scroll" tabIndex={0} role="region" aria-label="Schema">
        <table>
          <thead>
            <tr>
              <th scope="col">Column</th>
              <th scope="col">Type</th>
              <th scope="col">Comes from</th>
              <th scope="col">Description</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field.name}>
                <th scope="row">
                  <a
                    href={href(writeRoute(lineageOf(of.id)), columnWay(field.name))}
                    title="Trace it to its sources"
                  >
                    <bdi>{clip(field.name, 80)}</bdi>
                  </a>
                </th>
                <td>
                  <code>{clip(field.type ?? "", 60)}</code>
                </td>
                <td>
                  {(sources.get(field.name) ?? []).slice(0, 3).map((each) => (
                    <div key={each.from.dataset + each.from.field}>
                      <bdi>
                        {clip(parseId(each.from.dataset).name, 40)} · {clip(each.from.field, 40)}
                      </bdi>{" "}
                      <small class="muted">{each.kinds.join(", ")}</small>{" "}
                      {each.masked && <span class="badge">masked</span>}
                    </div>
                  ))}
                </td>
                <td>
                  {clip(
                    field.description ??
                      of.columns.find((each) => each.name === field.name)?.description ??
                      "",
                    200,
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Nested fields by their path. */
function flat(fields: SchemaField[], before = ""): SchemaField[] {
  return fields.flatMap((field) => [
    { ...field, name: before + field.name },
    ...flat(field.fields ?? [], `${before}${field.name}.`),
  ]);
}

function History({ id }: { id: string }) {
  const asked = useAsk<{ versions: SchemaVersion[] }>("/hw/v1/schemas", { node: id });
  return (
    <Answer of={asked}>
      {({ versions }) =>
        versions.length ? (
          <ol class="plain history">
            {versions.map((each) => (
              <li key={each.version + each.firstSeen}>
                <strong>
                  <Time of={each.firstSeen} />
                </strong>{" "}
                {each.current && <span class="badge">now</span>}{" "}
                {each.breaking && <span class="badge bad">breaking</span>}{" "}
                {plural(each.fields.length, "column")}{" "}
                {each.run && (
                  <>
                    by run <RunLink id={each.run} />
                  </>
                )}
                <ul>
                  {each.changes.map((change, at) => (
                    <li key={at} class={change.breaking ? "removed" : "added"}>
                      {words(change as unknown as Record<string, unknown>)}
                    </li>
                  ))}
                </ul>
              </li>
            ))}
          </ol>
        ) : (
          <Empty>No schema was told of it.</Empty>
        )
      }
    </Answer>
  );
}

const words = (change: Record<string, unknown>): string =>
  Object.entries(change)
    .filter(([name, value]) => value !== null && value !== undefined && name !== "breaking")
    .map(([, value]) => String(value))
    .join(" ");

function Jobs({ of }: { of: ShownDataset }) {
  return (
    <div class="two">
      {(["producers", "consumers"] as const).map((side) => (
        <section key={side}>
          <h2>{side === "producers" ? "Written by" : "Read by"}</h2>
          {of[side].length ? (
            <ul class="plain">
              {of[side].map((id) => (
                <li key={id}>
                  <NodeLink id={id} most={70} />
                  <LastRuns job={id} />
                </li>
              ))}
            </ul>
          ) : (
            <Empty>
              {side === "producers" ? "Nobody is known to write it." : "Nobody is known to read it."}
            </Empty>
          )}
        </section>
      ))}
    </div>
  );
}

/** How the last runs of a job went; what a dataset holds is what they left behind. */
function LastRuns({ job }: { job: string }) {
  const asked = useAsk<Run[]>("/hw/v1/runs", { job, limit: 10 });
  return asked.data?.length ? <Strip runs={asked.data} /> : null;
}

/** Runs that wrote it or read it, the newest first. */
function TouchedBy({ of }: { of: ShownDataset }) {
  const asked = useAsk<Run[]>("/hw/v1/runs", { dataset: of.id, limit: 500 });
  useFresh(asked, (entry) => [...(entry.inputs ?? []), ...(entry.outputs ?? [])].includes(of.id));
  const role = (job: string | null) =>
    [of.producers.includes(job ?? "") && "wrote", of.consumers.includes(job ?? "") && "read"]
      .filter(Boolean)
      .join(", ");
  return (
    <Answer of={asked}>
      {(runs) =>
        runs.length ? (
          <RunRows runs={runs} withJob role={role} />
        ) : (
          <Empty>No run is known to have written or read it.</Empty>
        )
      }
    </Answer>
  );
}

function Tests({ of }: { of: ShownDataset }) {
  const asked = useAsk<{ incidents: IncidentLine[] }>("/hw/v1/incidents", {
    status: "all",
    days: 365,
    limit: 1000,
  });
  const open = (asked.data?.incidents ?? []).filter((each) => each.dataset === of.id);
  return (
    <>
      {open.length > 0 && (
        <p>
          {open.map((each) => (
            <a key={each.id} href={href(writeRoute({ page: "incident", id: each.id }))}>
              {each.test} is {each.status}
            </a>
          ))}
        </p>
      )}
      {of.assertions.length ? (
        <ul class="plain">
          {of.assertions.map((each, at) => (
            <li key={at}>
              <span class={`state ${each.success ? "ok" : "bad"}`}>
                {each.success ? "✓ passed" : "✕ failed"}
              </span>{" "}
              {each.assertion}
              {each.column ? `(${each.column})` : ""} <Time of={each.at} />{" "}
              {each.run && <RunLink id={each.run} />}
            </li>
          ))}
        </ul>
      ) : (
        <Empty>Nobody has tested it.</Empty>
      )}
    </>
  );
}
