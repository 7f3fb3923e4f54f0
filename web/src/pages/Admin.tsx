// pages/Admin: the server, keys, names that become one, deliveries, settings as loaded, and what was done by hand.
import { query } from "../address.ts";
import type { Server } from "../api/model.ts";
import { bytes, clip } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { Json } from "../parts/Json.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { Time } from "../parts/Words.tsx";
import { Aliases, Orphans } from "./Aliases.tsx";
import { ApiKeys } from "./ApiKeys.tsx";
import { Deliveries, Hooks } from "./Deliveries.tsx";
import { Tabs, useMayChange } from "./Head.tsx";

const TABS = ["server", "keys", "names", "deliveries", "settings", "audit"];

export function Admin() {
  useTitle("Admin");
  const may = useMayChange();
  const said = query.value.get("tab") ?? "";
  const tab = TABS.includes(said) ? said : "server";
  return (
    <div class="page admin">
      <h1>Admin</h1>
      <Tabs names={TABS} at={tab} />
      {tab === "server" && <About />}
      {tab === "keys" && <ApiKeys may={may} />}
      {tab === "names" && (
        <>
          <Aliases may={may} />
          <Orphans may={may} />
        </>
      )}
      {tab === "deliveries" && (
        <>
          <Deliveries may={may} />
          <Hooks may={may} />
        </>
      )}
      {tab === "settings" && <Settings />}
      {tab === "audit" && <Audit />}
    </div>
  );
}

function About() {
  const server = useAsk<Server>("/hw/v1/server");
  return (
    <section>
      <h2>Server</h2>
      <Answer of={server}>
        {(it) => (
          <dl class="facts">
            <dt>version</dt>
            <dd>{it.version}</dd>
            <dt>store</dt>
            <dd>
              <code>{it.store.url}</code>, {bytes(it.store.bytes)}, {bytes(it.store.free_bytes)} free
            </dd>
            <dt>keys</dt>
            <dd>{it.auth === "on" ? `asked for; you are ${it.caller.name}` : "nobody is asked for one"}</dd>
            <dt>writes</dt>
            <dd>{it.read_only ? "read only" : "taken"}</dd>
          </dl>
        )}
      </Answer>
      <Retention />
    </section>
  );
}

type Rooms = Record<string, Record<string, unknown>>;

/** How long things are kept; what is not named is kept for ever. */
function Retention() {
  const settings = useAsk<Rooms>("/hw/v1/settings");
  return (
    <>
      <h2>Retention</h2>
      <Answer of={settings} rows={3}>
        {(rooms) => {
          const { every, ...kept } = rooms.retention ?? {};
          const told = Object.entries(kept);
          return (
            <>
              <dl class="facts">
                {told.map(([name, value]) => (
                  <>
                    <dt>{name.replaceAll("_", " ")}</dt>
                    <dd>{value === null || value === "" ? "for ever" : String(value)}</dd>
                  </>
                ))}
              </dl>
              <p class="muted">
                {every === null || every === "" || every === undefined
                  ? "Nothing is let go of by itself."
                  : `Looked after every ${String(every)}.`}{" "}
                Set in <code>[retention]</code> of headwater.toml;{" "}
                <code>headwater store prune --dry-run</code> tells what would go.
              </p>
            </>
          );
        }}
      </Answer>
    </>
  );
}

function Settings() {
  const settings = useAsk<Rooms>("/hw/v1/settings");
  return (
    <section>
      <h2>Settings as loaded</h2>
      <Answer of={settings}>{(it) => <Json value={it} open={2} />}</Answer>
    </section>
  );
}

interface Done {
  at: string;
  by: string;
  what: string;
  detail: unknown;
}

function Audit() {
  const audit = useAsk<Done[]>("/hw/v1/audit", { limit: 200 });
  return (
    <section>
      <h2>Done by hand</h2>
      <Answer of={audit}>
        {(rows) =>
          rows.length ? (
            <div class="scroll" tabIndex={0} role="region" aria-label="Done by hand">
              <table>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Who</th>
                    <th scope="col">What</th>
                    <th scope="col">Of what</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((each, at) => (
                    <tr key={at}>
                      <td>
                        <Time of={each.at} />
                      </td>
                      <td>{each.by}</td>
                      <td>{each.what.replaceAll("_", " ")}</td>
                      <td class="muted">{clip(told(each.detail), 160)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>Nothing yet.</Empty>
          )
        }
      </Answer>
    </section>
  );
}

/** What a command said, without its empty parts. */
function told(detail: unknown): string {
  if (!detail || typeof detail !== "object") return String(detail ?? "");
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
