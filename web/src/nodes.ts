// nodes: an id as the server writes it (`dataset:NAMESPACE:NAME`) <-> its kind, its parts, its pages.
import type { Route } from "./route.ts";

export interface Named {
  kind: "dataset" | "job" | "run";
  namespace: string;
  name: string;
}

/**
 * The parts of an id. Namespaces and names hold colons, so where the name begins is a guess; a wrong one shows
 * less well, and still leads to the same node, because the parts are only ever put together again.
 */
export function parseId(id: string): Named {
  const kind = id.startsWith("job:") ? "job" : id.startsWith("run:") ? "run" : "dataset";
  const rest = id.slice(id.indexOf(":") + 1);
  if (kind === "run") return { kind, namespace: "", name: rest };
  return { kind, ...guess(rest) };
}

function guess(rest: string): { namespace: string; name: string } {
  // scheme://host:port,host:port/path:name, scheme://host:name, arn:…:account:name, scheme:name, plain:name
  const url =
    /^([a-z][\w+.-]*:\/\/[^:[]*(?:\[[^\]]*\])?(?::\d+(?:,[^:]+:\d+)*(?:\/[^:]*)?(?=:))?):(.*)$/is.exec(
      rest,
    ) ?? /^(arn(?::[^:]*){4}):(.*)$/s.exec(rest);
  if (url) return { namespace: url[1]!, name: url[2]! };
  const at = rest.indexOf(":");
  return { namespace: rest.slice(0, at), name: rest.slice(at + 1) };
}

export const nodeId = (kind: "dataset" | "job", namespace: string, name: string): string =>
  `${kind}:${namespace}:${name}`;

export const fieldId = (dataset: string, field: string): string =>
  `datasetField:${dataset.slice("dataset:".length)}:${field}`;

export function pageOf(id: string): Route {
  const { kind, namespace, name } = parseId(id);
  return kind === "run" ? { page: "run", id: name } : { page: kind, namespace, name };
}

export function lineageOf(id: string): Route {
  const { kind, namespace, name } = parseId(id);
  return { page: "lineage", kind: kind === "job" ? "job" : "dataset", namespace, name };
}

/** The query that shows a column's whole way: from dataset to dataset, since jobs only stand between. */
export const columnWay = (field: string): Record<string, string> => ({ c: field, grain: "dataset" });
