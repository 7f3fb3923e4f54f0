// pages/Aliases: rules by which several names become one dataset, with a preview; tested datasets that nobody is known to write.
import { useState } from "preact/hooks";
import { Problem, tell } from "../api/client.ts";
import { plural } from "../format.ts";
import { Json } from "../parts/Json.tsx";
import { Answer, Empty, Fault } from "../parts/States.tsx";
import { type Asked, useAsk } from "../parts/use.ts";

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

export function Aliases({ may }: { may: boolean }) {
  const rules = useAsk<Rule[]>("/hw/v1/aliases");
  const [draft, setDraft] = useState<Rule>({});
  const [preview, setPreview] = useState<Preview | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const put = (dry: boolean) => {
    const body = Object.fromEntries(Object.entries(draft).filter(([, value]) => value));
    tell<Preview>("PUT", "/hw/v1/aliases", body, { dry_run: dry }).then((found) => {
      setFault(null);
      setPreview(found);
      if (!dry) {
        setDraft({});
        rules.again();
      }
    }, failed);
  };
  const failed = (problem: unknown) => {
    setPreview(null);
    if (problem instanceof Problem) setFault(problem);
  };
  return (
    <section>
      <h2>Alias rules</h2>
      <RuleList of={rules} may={may} failed={failed} />
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
                onInput={(event) => {
                  setDraft({ ...draft, [name]: event.currentTarget.value });
                  setPreview(null); // it was of another rule
                }}
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

function RuleList({
  of,
  may,
  failed,
}: {
  of: Asked<Rule[]>;
  may: boolean;
  failed: (problem: unknown) => void;
}) {
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
                      }).then(of.again, failed)
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

export function Orphans({ may }: { may: boolean }) {
  const correlation = useAsk<Correlation>("/hw/v1/correlation");
  const [fault, setFault] = useState<Problem | null>(null);
  return (
    <section>
      <h2>Tested, but written by nobody known</h2>
      {fault && <Fault fault={fault} />}
      <Answer of={correlation}>
        {(it) => (
          <>
            <p class="muted">
              {Math.round(it.correlation_rate * 100)} % of {plural(it.total_datasets, "tested dataset")} have
              a known writer.
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
                        }).then(
                          () => {
                            setFault(null);
                            correlation.again();
                          },
                          (failed: unknown) => failed instanceof Problem && setFault(failed),
                        )
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
  );
}
