// api/model: the answers of /hw/v1, as its description tells them.

export type State = "START" | "RUNNING" | "COMPLETE" | "FAIL" | "ABORT" | "OTHER";

export interface Run {
  id: string;
  job: string | null;
  state: State | null;
  startedAt: string | null;
  endedAt: string | null;
  durationMs: number | null;
  nominalStart: string | null;
  nominalEnd: string | null;
  parent: string | null;
  root: string | null;
  error: string | null;
  producer: string | null;
}

export interface GraphNode {
  id: string;
  type: "DATASET" | "JOB" | "RUN" | "DATASET_VERSION";
  namespace?: string;
  name?: string;
  distance?: number;
  lastSeen?: string;
  jobType?: string;
  integration?: string;
  datasetType?: string;
  parent?: string;
  /** How many jobs were folded into this one. */
  jobs?: number;
  /** How many stand next to it that were left out, each way. */
  more?: { up?: number; down?: number };
  lastRun?: Run;
  /** Of runs. */
  job?: string;
  state?: State | null;
  startedAt?: string | null;
  /** Of versions of datasets. */
  dataset?: string;
  run?: string | null;
}

export interface GraphEdge {
  from: string;
  to: string;
  via?: string[];
}

export interface Field {
  dataset: string;
  field: string;
}

export interface Relation {
  from: Field;
  to: Field;
  kinds: string[];
  masked: boolean;
  jobs: string[];
  descriptions: string[];
}

export interface Graph {
  start: string | null;
  nodes: GraphNode[];
  edges: GraphEdge[];
  columns: Relation[];
  cut: boolean;
}

export interface Owner {
  name: string;
  type?: string | null;
}

export interface Tag {
  key?: string;
  tag?: string;
  name?: string;
  value?: string;
  field?: string | null;
}

export interface Assertion {
  assertion: string;
  column: string | null;
  success: boolean;
  severity?: string | null;
  at?: string;
  run?: string;
}

export interface SchemaField {
  name: string;
  type?: string;
  description?: string;
  fields?: SchemaField[];
}

interface Head {
  id: string;
  namespace: string;
  name: string;
  firstSeen: string | null;
  lastSeen: string | null;
  description: string | null;
  owners: Owner[];
  tags: Tag[];
  facets: Record<string, Record<string, unknown>>;
}

export interface ShownDataset extends Head {
  type: "DATASET";
  aliases: string[];
  fields: SchemaField[];
  columns: { name: string; description: string | null; tags: unknown[] }[];
  producers: string[];
  consumers: string[];
  assertions: Assertion[];
}

export interface ShownJob extends Head {
  type: "JOB";
  parent?: string;
  inputs: string[];
  outputs: string[];
  versions: { version: string; firstSeen: string; lastSeen: string; runs: number }[];
  runs: Run[];
}

export interface Moved {
  dataset: string;
  rows?: number;
  bytes?: number;
  files?: number;
  version?: string;
}

export interface ShownRun extends Run {
  type: "RUN";
  facets: Record<string, Record<string, unknown>>;
  inputs: Moved[];
  outputs: Moved[];
  assertions: Assertion[];
  children: Run[];
}

export interface Hit {
  id: string;
  type: "DATASET" | "JOB" | "RUN";
  namespace: string;
  name: string;
  lastSeen: string | null;
  match: string;
  matches: { in: string; text: string; marks: [number, number][] }[];
  description: string | null;
  owners: Owner[];
  tags: string[];
}

export interface SchemaChange {
  field?: string;
  column?: string;
  change?: string;
  kind?: string;
  before?: string | null;
  after?: string | null;
  breaking: boolean;
}

export interface SchemaVersion {
  version: string;
  firstSeen: string;
  lastSeen: string;
  current: boolean;
  run: string | null;
  job: string | null;
  fields: SchemaField[];
  changes: SchemaChange[];
  breaking: boolean;
}

export interface Refused {
  id: number;
  path: string;
  reason: string;
  first_seen: string;
  last_seen: string;
  times: number;
  size: number;
  payload: string;
}

export interface Status {
  events: number;
  rejects: number;
  jobs: number;
  datasets: number;
  runs: number;
  edges: number;
  search: string;
  firstEvent: string | null;
  lastEvent: string | null;
  rejected?: Refused[];
}

export interface Server {
  version: string;
  time: string;
  auth: "on" | "off";
  read_only: boolean;
  caller: { name: string; scopes: string[] };
  store: { url: string; bytes: number | null; free_bytes: number | null };
  intake: { requests: number; bytes: number };
}

export type IncidentStatus = "open" | "acknowledged" | "resolved" | "muted";

export interface IncidentLine {
  id: string;
  kind: "test" | "run" | "schema" | "volume" | "freshness";
  status: IncidentStatus;
  dataset?: string;
  job?: string;
  test: string;
  column: string | null;
  severity: string | null;
  openedAt: string;
  lastFailedAt: string;
  failures: number;
  attempts: number;
  changedAt: string;
  changedBy: string | null;
  reason: string | null;
  mutedUntil: string | null;
  passedAt: string | null;
  message?: string | null;
  orphan: boolean;
}

export interface Suspect {
  job: string | null;
  runId: string;
  endedAt: string | null;
  distance: number;
  score: number;
  reasons: string[];
}

export interface Incident extends IncidentLine {
  details: Record<string, unknown>;
  producer: string | null;
  blamed: {
    job: string;
    runId: string;
    state: State | null;
    startedAt: string | null;
    endedAt: string | null;
    error: string | null;
  } | null;
  suspects: Suspect[];
  impact: {
    datasets: { id: string; distance: number; lastSeen: string | null; columns?: string[] }[];
    jobs: string[];
    cut: boolean;
  };
  runs: { runId: string | null; at: string; attempts: number }[];
  history: {
    at: string;
    by: string | null;
    status: string | null;
    reason?: string | null;
    note?: string | null;
  }[];
}

export interface LogEntry {
  number: number;
  kind: "run" | "job" | "dataset" | "command";
  time: string;
  type?: string | null;
  run?: string | null;
  job?: string | null;
  dataset?: string;
  /** Left out where there are none. */
  inputs?: string[];
  outputs?: string[];
  event: unknown;
}

export interface Impact {
  start: string;
  datasets: ImpactLine[];
  jobs: ImpactLine[];
  owners: { name: string; nodes: number; first: string }[];
  unsure: string[];
  counts: { datasets: number; jobs: number; columns?: number };
  cut: boolean;
}

export interface ImpactLine {
  id: string;
  type: "DATASET" | "JOB";
  namespace: string;
  name: string;
  distance: number;
  owners: Owner[];
  lastWritten?: string | null;
  lastRunAt?: string | null;
  lastRun?: Run | null;
  path: string[];
  columns?: { field: string; distance: number }[];
}

export interface Difference {
  from: string;
  to: string;
  nodes: { added: string[]; removed: string[] };
  edges: { added: GraphEdge[]; removed: GraphEdge[] };
  columns: { added: ChangedRelation[]; removed: ChangedRelation[] };
  schemas: { dataset: string; change: string; changes: SchemaChange[]; breaking: boolean }[];
}

export interface ChangedRelation {
  from: Field;
  to: Field;
  kind: string;
  masked: boolean;
  job: string;
}
