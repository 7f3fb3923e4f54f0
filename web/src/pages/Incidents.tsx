// pages/Incidents: what is broken -> a list by state and age.
import { useEffect } from "preact/hooks";
import { href, query, say } from "../address.ts";
import type { IncidentLine, IncidentStatus } from "../api/model.ts";
import { clip, plural } from "../format.ts";
import { parseId } from "../nodes.ts";
import { useTitle } from "../parts/Frame.tsx";
import { useNews } from "../parts/News.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { Time } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";

const STATUSES = ["active", "open", "acknowledged", "resolved", "muted", "all"];
const SIGNS: Record<IncidentStatus, [string, string]> = {
  open: ["bad", "✕"],
  acknowledged: ["warn", "◔"],
  resolved: ["ok", "✓"],
  muted: ["none", "–"],
};

export function Incidents() {
  useTitle("Incidents");
  const status = query.value.get("status") ?? "active";
  const kind = query.value.get("kind") ?? "";
  const news = useNews();
  const asked = useAsk<{ incidents: IncidentLine[]; total: number }>("/hw/v1/incidents", {
    status,
    kind,
    days: 90,
    limit: 500,
  });
  // asks anew when something came in
  useEffect(() => {
    if (news) asked.again();
  }, [news]);
  return (
    <div class="page">
      <h1>Incidents</h1>
      <div class="filters">
        <div class="tabs" role="group" aria-label="State">
          {STATUSES.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === status}
              onClick={() => say({ status: each === "active" ? undefined : each })}
            >
              {each}
            </button>
          ))}
        </div>
        <label>
          kind{" "}
          <select value={kind} onChange={(event) => say({ kind: event.currentTarget.value })}>
            <option value="">any</option>
            {["test", "run", "schema", "volume", "freshness"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      <Answer of={asked}>
        {({ incidents, total }) =>
          incidents.length ? (
            <>
              <p class="muted">{plural(total, "incident")}</p>
              <ul class="plain cards">
                {incidents.map((each) => (
                  <li key={each.id}>
                    <IncidentRow of={each} whole />
                  </li>
                ))}
              </ul>
            </>
          ) : (
            <Empty>{status === "active" ? "Nothing is broken." : "None."}</Empty>
          )
        }
      </Answer>
    </div>
  );
}

export function StatusBadge({ status }: { status: IncidentStatus }) {
  const [look, sign] = SIGNS[status];
  return (
    <span class={`state ${look}`}>
      <span aria-hidden="true">{sign}</span> {status}
    </span>
  );
}

export function whatFailed(of: IncidentLine): string {
  const subject = parseId(of.dataset ?? of.job ?? "dataset:?:?").name;
  if (of.kind === "run") return `${subject} failed`;
  return `${of.test}${of.column ? `(${of.column})` : ""} on ${subject}`;
}

export function IncidentRow({ of, whole = false }: { of: IncidentLine; whole?: boolean }) {
  return (
    <>
      <StatusBadge status={of.status} />{" "}
      <a href={href(writeRoute({ page: "incident", id: of.id }))}>
        <bdi>{clip(whatFailed(of), whole ? 120 : 50)}</bdi>
      </a>{" "}
      <span class="muted">
        since <Time of={of.openedAt} />
        {whole && of.failures > 1 && <>, {plural(of.failures, "failure")}</>}
        {of.orphan && <>, nobody known writes it</>}
      </span>
      {whole && of.message && <div class="muted">{clip(of.message, 200)}</div>}
    </>
  );
}
