// pages/Facets: the facets of a dataset, job or run -> foldable trees, what people look for first.
import { Json } from "../parts/Json.tsx";
import { Empty } from "../parts/States.tsx";

export function Facets({ of }: { of: Record<string, unknown> }) {
  const names = Object.keys(of).sort();
  if (!names.length) return <Empty>No facets were told.</Empty>;
  return (
    <div class="facets">
      {names.map((name) => (
        <details key={name}>
          <summary>
            <bdi>{name}</bdi>
          </summary>
          <Json value={of[name]} open={1} />
        </details>
      ))}
    </div>
  );
}

/** A text inside a facet, if it is there. */
export function told(facets: Record<string, Record<string, unknown>>, facet: string, name: string): string {
  const found = facets[facet]?.[name];
  return typeof found === "string" ? found : "";
}
