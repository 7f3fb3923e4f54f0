// route: a path below the base -> which page, of what; and back. Names hold slashes, so each part is encoded.

export type Route =
  | { page: "home" | "datasets" | "jobs" | "runs" | "events" | "rejected" | "incidents" | "start" | "admin" }
  | { page: "lineage"; kind: "dataset" | "job"; namespace: string; name: string }
  | { page: "dataset" | "job"; namespace: string; name: string }
  | { page: "run"; id: string }
  | { page: "incident"; id: string }
  | { page: "unknown"; path: string };

const LISTS = new Set(["datasets", "jobs", "runs", "events", "rejected", "incidents", "start", "admin"]);

export function readRoute(path: string): Route {
  const parts = path.split("/").filter(Boolean).map(decoded);
  const [first, second, third, fourth] = parts;
  if (first === undefined) return { page: "home" };
  if (parts.length === 1 && LISTS.has(first)) return { page: first } as Route;
  if (first === "lineage" && parts.length === 1) return { page: "home" };
  const kind = second?.toLowerCase(); // links of some Marquez say DATASET
  if (first === "lineage" && parts.length === 4 && (kind === "dataset" || kind === "job"))
    return { page: "lineage", kind, namespace: third!, name: fourth! };
  if (first === "datasets" && parts.length === 3)
    return { page: "dataset", namespace: second!, name: third! };
  if (first === "jobs" && parts.length === 3) return { page: "job", namespace: second!, name: third! };
  if (first === "runs" && parts.length === 2) return { page: "run", id: second! };
  if (first === "incidents" && parts.length === 2) return { page: "incident", id: second! };
  return { page: "unknown", path };
}

export function writeRoute(route: Route): string {
  switch (route.page) {
    case "home":
      return "/";
    case "lineage":
      return joined("lineage", route.kind, route.namespace, route.name);
    case "dataset":
      return joined("datasets", route.namespace, route.name);
    case "job":
      return joined("jobs", route.namespace, route.name);
    case "run":
      return joined("runs", route.id);
    case "incident":
      return joined("incidents", route.id);
    case "unknown":
      return route.path;
    default:
      return `/${route.page}`;
  }
}

function joined(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray % typed by hand: show what was typed
  }
}
