// pages/Admin: keys, alias rules with a preview, orphans, deliveries, settings and what was done by hand.
import { useState } from "preact/hooks";
import { Problem, tell } from "../api/client.ts";
import type { Server } from "../api/model.ts";
import { bytes, clip, plural } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { Json } from "../parts/Json.tsx";
import { Answer, Empty, Fault } from "../parts/States.tsx";
import { type Asked, useAsk } from "../parts/use.ts";
import { Time } from "../parts/Words.tsx";
import { useMayChange } from "./Head.tsx";

interface Key {
  id: string;
  name: string;
  scopes: string[];
  state: string;
  createdAt: string;
  createdBy: string;
  expiresAt: string | null;
  usedAt: string | null;
}
interface Rule {
  namespace?: string;
  name?: string;
  to_namespace?: string;
  to_name?: string;
}
interface Preview {
  merges: unknown[];
  splits: unknown[];
  renames: unknown[];
  counts: { merges: number; splits: number; renames: number };
  applied: boolean;
}
interface Hooks {
  hooks: { name: string; url: string; signed: boolean; waiting: number; done: number; dead: number }[];
  messages: {
    hook: string;
    event: string;
    state: string;
    tries: number;
    madeAt: string;
    fault: string | null;
  }[];
}
interface Correlation {
  correlation_rate: number;
  total_datasets: number;
  orphan_datasets: {
    dataset_urn: string;
    test_count: number;
    likely_match: { dataset_urn: string } | null;
  }[];
  suggested_patterns: { pattern: string; canonical: string; resolves_count: number }[];
}

export function Admin() {
  useTitle("Admin");
  const may = useMayChange();
  const server = useAsk<Server>("/hw/v1/server");
  const keys = useAsk<Key[]>("/hw/v1/keys");
  const hooks = useAsk<Hooks>("/hw/v1/hooks");
  const settings = useAsk<Record<string, unknown>>("/hw/v1/settings");
  const correlation = useAsk<Correlation>("/hw/v1/correlation");
  const audit = useAsk<{ at: string; by: string; what: string; detail: unknown }[]>("/hw/v1/audit", {
    limit: 20,
  });
  return (
    <div class="page">
      <h1>Admin</h1>
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
      </section>
      <section>
        <h2>Keys</h2>
        <Answer of={keys}>
          {(found) =>
            found.length ? (
              <ul class="plain">
                {found.map((each) => (
                  <li key={each.id}>
                    <strong>{each.name}</strong>{" "}
                    <span class={`state ${each.state === "active" ? "ok" : "none"}`}>{each.state}</span>{" "}
                    {each.scopes.join(", ")}{" "}
                    <span class="muted">
                      made <Time of={each.createdAt} /> by {each.createdBy}, used <Time of={each.usedAt} />
                    </span>{" "}
                    {may && each.state === "active" && (
                      <button
                        type="button"
                        onClick={() =>
                          confirm(`End the key ${each.name}?`) &&
                          void tell("DELETE", `/hw/v1/keys/${encodeURIComponent(each.id)}`, "").then(
                            keys.again,
                          )
                        }
                      >
                        End it
                      </button>
                    )}
                  </li>
                ))}
              </ul>
            ) : (
              <Empty>
                None. <code>headwater keys create NAME --scope read</code> makes one.
              </Empty>
            )
          }
        </Answer>
      </section>
      <Aliases may={may} />
      <section>
        <h2>Tested, but written by nobody known</h2>
        <Answer of={correlation}>
          {(it) => (
            <>
              <p class="muted">
                {Math.round(it.correlation_rate * 100)} % of {plural(it.total_datasets, "tested dataset")}{" "}
                have a known writer.
              </p>
              <ul class="plain">
                {it.orphan_datasets.map((each) => (
                  <li key={each.dataset_urn}>
                    <bdi>{each.dataset_urn}</bdi>{" "}
                    {each.likely_match && <span class="muted">perhaps {each.likely_match.dataset_urn}</span>}
                  </li>
                ))}
                {it.suggested_patterns.map((each) => (
                  <li key={each.pattern}>
                    <code>{each.pattern}</code> → <code>{each.canonical}</code> joins {each.resolves_count}{" "}
                    {may && (
                      <button
                        type="button"
                        onClick={() =>
                          void tell("POST", "/hw/v1/correlation/patterns", {
                            pattern: each.pattern,
                            canonical: each.canonical,
                          }).then(correlation.again)
                        }
                      >
                        Save this rule
                      </button>
                    )}
                  </li>
                ))}
              </ul>
            </>
          )}
        </Answer>
      </section>
      <section>
        <h2>Deliveries</h2>
        <Answer of={hooks}>{(it) => <Deliveries of={it} may={may} again={hooks.again} />}</Answer>
      </section>
      <section>
        <h2>Settings as loaded</h2>
        <Answer of={settings}>{(it) => <Json value={it} open={0} />}</Answer>
      </section>
      <section>
        <h2>Done by hand</h2>
        <Answer of={audit}>
          {(rows) =>
            rows.length ? (
              <ul class="plain">
                {rows.map((each, at) => (
                  <li key={at}>
                    <Time of={each.at} /> {each.by} <strong>{each.what}</strong>{" "}
                    <small class="muted">{clip(JSON.stringify(each.detail), 160)}</small>
                  </li>
                ))}
              </ul>
            ) : (
              <Empty>Nothing yet.</Empty>
            )
          }
        </Answer>
      </section>
    </div>
  );
}

function Deliveries({ of, may, again }: { of: Hooks; may: boolean; again: () => void }) {
  if (!of.hooks.length)
    return (
      <Empty>
        No webhooks. <code>headwater hooks add NAME URL</code> adds one.
      </Empty>
    );
  return (
    <ul class="plain">
      {of.hooks.map((each) => (
        <li key={each.name}>
          <strong>{each.name}</strong> <code>{each.url}</code>{" "}
          {each.signed && <span class="badge">signed</span>} {each.waiting} waiting, {each.done} delivered,{" "}
          {each.dead} given up{" "}
          {may && each.dead > 0 && (
            <button
              type="button"
              onClick={() =>
                void tell("POST", `/hw/v1/hooks/${encodeURIComponent(each.name)}/retry`, {}).then(again)
              }
            >
              Try again
            </button>
          )}
        </li>
      ))}
      {of.messages
        .filter((each) => each.fault)
        .slice(0, 10)
        .map((each, at) => (
          <li key={at} class="muted">
            <Time of={each.madeAt} /> {each.hook} {each.event}: {clip(each.fault ?? "", 120)}
          </li>
        ))}
    </ul>
  );
}

function Aliases({ may }: { may: boolean }) {
  const rules = useAsk<Rule[]>("/hw/v1/aliases");
  const [draft, setDraft] = useState<Rule>({});
  const [preview, setPreview] = useState<Preview | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const put = (dry: boolean) => {
    const body = Object.fromEntries(Object.entries(draft).filter(([, value]) => value));
    tell<Preview>("PUT", "/hw/v1/aliases", body, { dry_run: dry }).then(
      (found) => {
        setFault(null);
        setPreview(found);
        if (!dry) {
          setDraft({});
          rules.again();
        }
      },
      (failed: unknown) => failed instanceof Problem && setFault(failed),
    );
  };
  return (
    <section>
      <h2>Alias rules</h2>
      <RuleList of={rules} may={may} />
      {may && (
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault();
            put(true);
          }}
        >
          {(["namespace", "name", "to_namespace", "to_name"] as const).map((name) => (
            <label key={name}>
              {name.replace("_", " ")}{" "}
              <input
                value={draft[name] ?? ""}
                onInput={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })}
              />
            </label>
          ))}
          <button type="submit">See what it would do</button>
          <button
            type="button"
            class="strong"
            disabled={!preview || preview.applied}
            onClick={() => put(false)}
          >
            Save
          </button>
        </form>
      )}
      {fault && <Fault fault={fault} />}
      {preview && (
        <div role="status">
          <p>
            {preview.applied ? "Done: " : "It would make "}
            {plural(preview.counts.merges, "merge")}, {plural(preview.counts.splits, "split")},{" "}
            {plural(preview.counts.renames, "new name")}.
          </p>
          <Json
            value={{ merges: preview.merges, splits: preview.splits, renames: preview.renames }}
            open={1}
          />
        </div>
      )}
    </section>
  );
}

function RuleList({ of, may }: { of: Asked<Rule[]>; may: boolean }) {
  return (
    <Answer of={of}>
      {(found) =>
        found.length ? (
          <ul class="plain">
            {found.map((rule) => (
              <li key={JSON.stringify(rule)}>
                <code>
                  {rule.namespace ?? "*"} / {rule.name ?? "*"}
                </code>{" "}
                →{" "}
                <code>
                  {rule.to_namespace ?? "="} / {rule.to_name ?? "="}
                </code>{" "}
                {may && (
                  <button
                    type="button"
                    onClick={() =>
                      confirm("Take this rule back?") &&
                      void tell("DELETE", "/hw/v1/aliases", "", {
                        namespace: rule.namespace,
                        name: rule.name,
                      }).then(of.again)
                    }
                  >
                    Take back
                  </button>
                )}
              </li>
            ))}
          </ul>
        ) : (
          <Empty>None but those of the house.</Empty>
        )
      }
    </Answer>
  );
}
