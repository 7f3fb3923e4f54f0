// pages/ApiKeys: the keys that callers need: made, listed, ended. A new one is shown once, and kept nowhere in the page.
import { useState } from "preact/hooks";
import { Problem, tell } from "../api/client.ts";
import type { Server } from "../api/model.ts";
import { Copy } from "../parts/Copy.tsx";
import { Answer, Empty, Fault } from "../parts/States.tsx";
import { type Asked, useAsk } from "../parts/use.ts";
import { Time } from "../parts/Words.tsx";

interface Key {
  id: string;
  name: string;
  scopes: string[];
  rate: number | null;
  state: string;
  createdAt: string;
  createdBy: string;
  expiresAt: string | null;
  usedAt: string | null;
}

const SCOPES: [string, string][] = [
  ["ingest", "sends events"],
  ["read", "asks"],
  ["admin", "all of it"],
];
const LIVES: [string, string][] = [
  ["", "for ever"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "a year"],
];

export function ApiKeys({ may }: { may: boolean }) {
  const server = useAsk<Server>("/hw/v1/server");
  const keys = useAsk<Key[]>("/hw/v1/keys");
  const [fault, setFault] = useState<Problem | null>(null);
  const asks = server.data?.auth === "on";
  const end = (key: Key) => {
    const own =
      key.name === server.data?.caller.name ? " It is your own: this page will ask for another." : "";
    if (!confirm(`End the key ${key.name}? Whoever uses it is let in no more.${own}`)) return;
    tell("DELETE", `/hw/v1/keys/${encodeURIComponent(key.id)}`, "").then(
      () => {
        setFault(null);
        keys.again();
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  };
  return (
    <section>
      <h2>Keys</h2>
      {server.data && !asks && (
        <p class="muted">
          This server asks nobody for a key, so none is made or ended here: whoever can reach it now would
          keep one. <code>headwater keys create NAME --scope read</code> makes one in its store.
        </p>
      )}
      {may && asks && <Make keys={keys} />}
      {fault && <Fault fault={fault} />}
      <Answer of={keys}>
        {(found) =>
          found.length ? (
            <div class="scroll" tabIndex={0} role="region" aria-label="Keys">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">May</th>
                    <th scope="col">Made</th>
                    <th scope="col">Ends</th>
                    <th scope="col">Used</th>
                    <th scope="col">
                      <span class="unseen">End it</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((each) => (
                    <tr key={each.id}>
                      <th scope="row" title={each.id}>
                        {each.name}
                      </th>
                      <td>
                        <span class={`state ${each.state === "active" ? "ok" : "none"}`}>{each.state}</span>
                      </td>
                      <td>
                        {each.scopes.join(", ")}
                        {each.rate !== null && <span class="muted"> {each.rate}/s</span>}
                      </td>
                      <td>
                        <Time of={each.createdAt} /> <span class="muted">by {each.createdBy}</span>
                      </td>
                      <td>{each.expiresAt ? <Time of={each.expiresAt} /> : "never"}</td>
                      <td>{each.usedAt ? <Time of={each.usedAt} /> : "never"}</td>
                      <td>
                        {may && asks && each.state === "active" && (
                          <button type="button" onClick={() => end(each)}>
                            End it
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>None was made yet.</Empty>
          )
        }
      </Answer>
    </section>
  );
}

function Make({ keys }: { keys: Asked<Key[]> }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState("read");
  const [life, setLife] = useState("90d");
  const [made, setMade] = useState<{ name: string; key: string } | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const make = () =>
    tell<Key & { key: string }>("POST", "/hw/v1/keys", {
      name: name.trim(),
      scopes: [scope],
      ...(life ? { expires: life } : {}),
    }).then(
      (key) => {
        setMade({ name: key.name, key: key.key });
        setFault(null);
        setName("");
        keys.again();
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  return (
    <>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <label>
          for whom{" "}
          <input
            required
            maxLength={100}
            placeholder="airflow"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          may{" "}
          <select value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
            {SCOPES.map(([value, what]) => (
              <option key={value} value={value}>
                {value}: {what}
              </option>
            ))}
          </select>
        </label>
        <label>
          lives{" "}
          <select value={life} onChange={(event) => setLife(event.currentTarget.value)}>
            {LIVES.map(([value, what]) => (
              <option key={value} value={value}>
                {what}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="strong">
          Make a key
        </button>
      </form>
      {fault && <Fault fault={fault} />}
      {made && (
        <div class="once" role="status">
          <p>
            <strong>{made.name}</strong>'s key. It is shown this once; the server keeps only its hash.
          </p>
          <p>
            <code>{made.key}</code> <Copy text={() => made.key} label="Copy key" />{" "}
            <button type="button" onClick={() => setMade(null)}>
              I have it
            </button>
          </p>
        </div>
      )}
    </>
  );
}
