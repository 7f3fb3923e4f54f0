// pages/Lists: datasets or jobs by words, namespace, tag, owner -> rows; all of the choice stands in the address.
import { query, say } from "../address.ts";
import type { Hit } from "../api/model.ts";
import { clip } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { Rows } from "../parts/Rows.tsx";
import { Answer, Empty } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { LineageLink, NodeLink, Time } from "../parts/Words.tsx";

export function Listing({ type }: { type: "dataset" | "job" }) {
  const title = type === "dataset" ? "Datasets" : "Jobs";
  useTitle(title);
  const said = (name: string) => query.value.get(name) ?? "";
  const asked = useAsk<Hit[]>("/hw/v1/search", {
    q: said("q"),
    type,
    namespace: said("namespace"),
    tag: said("tag"),
    owner: said("owner"),
    limit: 1000,
  });
  return (
    <div class="page">
      <h1>{title}</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        {["q", "namespace", "tag", "owner"].map((name) => (
          <label key={name}>
            {name === "q" ? "words" : name}{" "}
            <input
              type="search"
              value={said(name)}
              onInput={(event) => say({ [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      </form>
      <Answer of={asked} rows={10}>
        {(hits) =>
          hits.length ? (
            <>
              <p class="muted">
                {hits.length === 1000 ? "The first 1,000; more words find fewer." : `${hits.length}`}
              </p>
              <Rows
                items={hits}
                height={40}
                label={title}
                row={(hit) => (
                  <>
                    <span class="grow">
                      <NodeLink id={hit.id} most={90} />
                    </span>
                    <span class="cell muted">
                      <bdi>{clip(hit.namespace, 40)}</bdi>
                    </span>
                    <span class="cell">{hit.owners.map((each) => each.name).join(", ")}</span>
                    <span class="cell">
                      <Time of={hit.lastSeen} />
                    </span>
                    <span class="cell">
                      <LineageLink id={hit.id} />
                    </span>
                  </>
                )}
              />
            </>
          ) : (
            <Empty>Nothing fits. Take away a word or a filter.</Empty>
          )
        }
      </Answer>
    </div>
  );
}
