// pages/Deliveries: what goes to other catalogues and to webhooks -> how far behind, what was refused and why; tried again, forgotten.
import { useEffect, useState } from "preact/hooks";
import { query, say } from "../address.ts";
import { Problem, tell } from "../api/client.ts";
import { bytes, clip, count, duration, plural } from "../format.ts";
import { Json } from "../parts/Json.tsx";
import { Answer, Empty, Fault } from "../parts/States.tsx";
import { type Asked, useAsk } from "../parts/use.ts";
import { Time } from "../parts/Words.tsx";

interface Delivery {
  name: string;
  to: string | null;
  every: number | null;
  worked: boolean;
  lag: { entries: number; seconds: number };
  open: number;
  sent: number;
  sentAt: string | null;
  refused: number;
  waiting: number;
  fault: { reason: string; since: string } | null;
}
interface Letter {
  id: number;
  what: "proposal" | "event";
  about: string;
  state: "dead" | "waiting";
  reason: string;
  at: string;
  bytes: number;
}
interface Hooked {
  hooks: { name: string; url: string; signed: boolean; waiting: number; done: number; dead: number }[];
  messages: {
    hook: string;
    event: string;
    state: string;
    tries: number;
    madeAt: string;
    dueAt: string | null;
    fault: string | null;
  }[];
}

/** How often a page that shows a lag looks again. */
const LOOK = 5000;

export function Deliveries({ may }: { may: boolean }) {
  const asked = useAsk<Delivery[]>("/hw/v1/deliveries");
  useEffect(() => {
    const again = setInterval(asked.again, LOOK);
    return () => clearInterval(again);
  }, []);
  return (
    <section>
      <h2>DataHub</h2>
      <Answer of={asked}>
        {(found) =>
          found.length ? (
            found.map((each) => <One key={each.name} of={each} may={may} again={asked.again} />)
          ) : (
            <Empty>
              Nothing is delivered to DataHub. Set <code>to</code> in <code>[deliver.datahub]</code> of
              headwater.toml, for example <code>datahub+rest://gms:8080</code>.
            </Empty>
          )
        }
      </Answer>
    </section>
  );
}

function One({ of, may, again }: { of: Delivery; may: boolean; again: () => void }) {
  return (
    <>
      <dl class="facts">
        <dt>to</dt>
        <dd>
          {of.to ? <code>{of.to}</code> : "another server of this store delivers"}
          {of.every && <span class="muted"> every {of.every} s</span>}
        </dd>
        <dt>state</dt>
        <dd>
          {of.fault ? (
            <span class="state bad">
              ✕ held up since <Time of={of.fault.since} />
            </span>
          ) : of.worked ? (
            <span class="state ok">✓ at work</span>
          ) : (
            <span class="state warn">◌ nobody works on it: serve.work is off, and no worker runs</span>
          )}
        </dd>
        <dt>behind</dt>
        <dd>
          {of.lag.entries
            ? `${plural(of.lag.entries, "entry", "entries")}, ${duration(of.lag.seconds * 1000)}`
            : "not at all"}
        </dd>
        <dt>sent</dt>
        <dd>
          {plural(of.sent, "proposal")}
          {of.sentAt && (
            <>
              , the last <Time of={of.sentAt} />
            </>
          )}
        </dd>
        <dt>held</dt>
        <dd>{plural(of.open, "run group")} to be told when complete</dd>
        <dt>refused</dt>
        <dd>
          {count(of.refused)}
          {of.waiting > 0 && <>, {count(of.waiting)} will be tried again</>}
        </dd>
      </dl>
      {of.fault && <p class="fault">{clip(of.fault.reason, 400)}</p>}
      {(of.refused > 0 || of.waiting > 0) && <Letters of={of} may={may} changed={again} />}
    </>
  );
}

function Letters({ of, may, changed }: { of: Delivery; may: boolean; changed: () => void }) {
  const path = `/hw/v1/deliveries/${encodeURIComponent(of.name)}`;
  const before = query.value.get("before") ?? "";
  const asked = useAsk<{ letters: Letter[]; next: number | null }>(`${path}/letters`, { before, limit: 50 });
  const [fault, setFault] = useState<Problem | null>(null);
  // what was refused or taken meanwhile
  useEffect(() => {
    asked.again();
  }, [of.refused, of.waiting]);
  const act = (method: string, where: string) =>
    tell(method, `${path}${where}`, "").then(
      () => {
        setFault(null);
        changed();
        asked.again();
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  return (
    <>
      <h3>Refused by DataHub</h3>
      {may && (
        <p>
          <button type="button" disabled={!of.refused} onClick={() => act("POST", "/retry")}>
            Try all again
          </button>{" "}
          <button
            type="button"
            onClick={() =>
              confirm("Forget all that was refused? The events stay in the log.") && act("DELETE", "/letters")
            }
          >
            Forget all
          </button>
        </p>
      )}
      {fault && <Fault fault={fault} />}
      <Answer of={asked}>
        {({ letters, next }) => (
          <>
            <ul class="plain letters">
              {letters.map((each) => (
                <OneLetter key={each.id} of={each} path={path} may={may} act={act} />
              ))}
            </ul>
            <p>
              {before && (
                <button type="button" onClick={() => say({ before: undefined })}>
                  Newest
                </button>
              )}{" "}
              {next !== null && (
                <button type="button" onClick={() => say({ before: String(next) })}>
                  Older
                </button>
              )}
            </p>
          </>
        )}
      </Answer>
    </>
  );
}

function OneLetter({
  of,
  path,
  may,
  act,
}: {
  of: Letter;
  path: string;
  may: boolean;
  act: (method: string, where: string) => void;
}) {
  const open = query.value.get("letter") === String(of.id);
  return (
    <li>
      <div class="line">
        <span class="grow">
          <span class={`state ${of.state === "dead" ? "bad" : "running"}`}>
            {of.state === "dead" ? "✕ refused" : "◔ waits"}
          </span>{" "}
          <bdi title={of.about}>{clip(of.about || of.what, 90)}</bdi>
        </span>
        <span class="muted">
          {of.what}, {bytes(of.bytes)}, <Time of={of.at} />
        </span>
        <button
          type="button"
          aria-expanded={open}
          onClick={() => say({ letter: open ? undefined : String(of.id) })}
        >
          Look
        </button>
        {may && (
          <>
            <button
              type="button"
              disabled={of.state !== "dead"}
              onClick={() => act("POST", `/retry?letter=${of.id}`)}
            >
              Try again
            </button>
            <button type="button" onClick={() => act("DELETE", `/letters/${of.id}`)}>
              Forget
            </button>
          </>
        )}
      </div>
      <p class="why">{clip(of.reason, 300)}</p>
      {open && <Body path={`${path}/letters/${of.id}`} />}
    </li>
  );
}

function Body({ path }: { path: string }) {
  const asked = useAsk<{ body: unknown }>(path);
  return <Answer of={asked}>{({ body }) => <Json value={body} open={2} />}</Answer>;
}

export function Hooks({ may }: { may: boolean }) {
  const asked = useAsk<Hooked>("/hw/v1/hooks");
  return (
    <section>
      <h2>Webhooks</h2>
      <Answer of={asked}>{(it) => <HookList of={it} may={may} asked={asked} />}</Answer>
    </section>
  );
}

function HookList({ of, may, asked }: { of: Hooked; may: boolean; asked: Asked<Hooked> }) {
  const [fault, setFault] = useState<Problem | null>(null);
  if (!of.hooks.length)
    return (
      <Empty>
        No webhooks. <code>headwater hooks add NAME URL</code> adds one.
      </Empty>
    );
  const retry = (name: string) =>
    void tell("POST", `/hw/v1/hooks/${encodeURIComponent(name)}/retry`, {}).then(
      () => {
        setFault(null);
        asked.again();
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  return (
    <>
      {fault && <Fault fault={fault} />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Webhooks">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Where</th>
              <th scope="col">Waiting</th>
              <th scope="col">Delivered</th>
              <th scope="col">Given up</th>
              <th scope="col">
                <span class="unseen">Try again</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {of.hooks.map((each) => (
              <tr key={each.name}>
                <th scope="row">{each.name}</th>
                <td>
                  <code>{clip(each.url, 60)}</code> {each.signed && <span class="badge">signed</span>}
                </td>
                <td>{count(each.waiting)}</td>
                <td>{count(each.done)}</td>
                <td>{count(each.dead)}</td>
                <td>
                  {may && each.dead > 0 && (
                    <button type="button" onClick={() => retry(each.name)}>
                      Try again
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <ul class="plain">
        {of.messages
          .filter((each) => each.fault)
          .slice(0, 20)
          .map((each, at) => (
            <li key={at} class="muted">
              <Time of={each.madeAt} /> {each.hook} {each.event}, {plural(each.tries, "try", "tries")}
              {each.dueAt && (
                <>
                  , again <Time of={each.dueAt} />
                </>
              )}
              : {clip(each.fault ?? "", 160)}
            </li>
          ))}
      </ul>
    </>
  );
}
