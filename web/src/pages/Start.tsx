// pages/Start: an engine -> the lines to paste, filled with this server's address; a line that turns green at the first event.
import { useEffect, useState } from "preact/hooks";
import { query, say } from "../address.ts";
import { key } from "../api/client.ts";
import type { Told } from "../api/follow.ts";
import { onNews } from "../api/news.ts";
import { clock } from "../format.ts";
import { Copy } from "../parts/Copy.tsx";
import { useTitle } from "../parts/Frame.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink } from "../parts/Words.tsx";

interface Engine {
  id: string;
  label: string;
  /** What must be installed where the job runs. */
  package: string;
  /** The first version that works. */
  least?: string;
  lines: (url: string, keyed: boolean) => string;
}

const ENGINES: Engine[] = [
  {
    id: "spark",
    label: "Spark",
    package: "pyspark",
    least: "3.5",
    lines: (url) =>
      `pip install 'headwater[spark]'\nexport HEADWATER_TRANSPORT=${url}\nheadwater run -- spark-submit your_job.py\n\n# or, in a session of your own:\nimport headwater.spark\nheadwater.spark.install(spark)`,
  },
  {
    id: "connect",
    label: "Kafka Connect",
    package: "fastavro",
    lines: (url) =>
      `pip install 'headwater[connect]'\ncat > connect.toml <<'END'\n[[clusters]]\nname = "mine"\nurl = "http://localhost:8083"\nbootstrap = "localhost:9092"\nEND\nheadwater connect once --dry-run      # shows every edge, sends nothing\nheadwater connect watch --transport ${url}`,
  },
  {
    id: "dlt",
    label: "dlt",
    package: "dlt",
    least: "1.20",
    lines: (url) =>
      `pip install 'headwater[dlt]'\nexport HEADWATER_TRANSPORT=${url}\npython your_pipeline.py`,
  },
  {
    id: "airflow",
    label: "Airflow",
    package: "apache-airflow",
    lines: (url) =>
      `pip install 'headwater[airflow]' apache-airflow-providers-openlineage\nexport AIRFLOW__OPENLINEAGE__TRANSPORT='{"type": "headwater.airflow.Transport", "url": "${url}"}'`,
  },
  {
    id: "any",
    label: "Anything else",
    package: "openlineage-python",
    lines: (url, keyed) =>
      `# any OpenLineage client\nexport OPENLINEAGE_URL=${url}\n\n# or one event by hand\ncurl ${keyed ? '-H "Authorization: Bearer $OPENLINEAGE_API_KEY" ' : ""}-H 'Content-Type: application/json' ${url}/api/v1/lineage -d '{"eventTime": "${new Date().toISOString()}",\n  "eventType": "COMPLETE", "run": {"runId": "${crypto.randomUUID?.() ?? "01890000-0000-7000-8000-000000000000"}"},\n  "job": {"namespace": "mine", "name": "first"}, "outputs": [{"namespace": "mine", "name": "table"}]}'`,
  },
];

const older = (version: string, least: string | undefined): boolean =>
  least !== undefined && version.localeCompare(least, "en", { numeric: true }) < 0;

export function Start() {
  useTitle("Use your own data");
  const at = query.value.get("engine") ?? "spark";
  const engine = ENGINES.find((each) => each.id === at) ?? ENGINES[0]!;
  const installed = useAsk<Record<string, string | null>>("/hw/v1/sources");
  const [heard, setHeard] = useState<Told | null>(null);
  useEffect(() => onNews((entry) => entry.kind !== "command" && setHeard((before) => before ?? entry)), []);
  const url = document.baseURI.replace(/\/$/, "");
  const version = installed.data?.[engine.package];
  const [example] = useState(() => new Map<string, string>());
  const text = example.get(engine.id) ?? engine.lines(url, Boolean(key.value));
  example.set(engine.id, text);
  return (
    <div class="page">
      <h1>Use your own data</h1>
      <div class="tabs" role="group" aria-label="Engine">
        {ENGINES.map((each) => (
          <button
            key={each.id}
            type="button"
            aria-pressed={each === engine}
            onClick={() => say({ engine: each.id })}
          >
            {each.label}
          </button>
        ))}
      </div>
      <pre tabIndex={0}>{text}</pre>
      <p>
        <Copy text={() => text} label="Copy these lines" />{" "}
        <span class="muted">
          {installed.data &&
            (version
              ? `Beside this server, ${engine.package} ${version} is installed${older(version, engine.least) ? `; ${engine.least} is the first that works` : ""}.`
              : `${engine.package} is not installed beside this server; where your job runs, it must be.`)}
        </span>
      </p>
      {key.value && (
        <p class="muted">
          This server asks for keys: add <code>export OPENLINEAGE_API_KEY=…</code> with a key of scope ingest.
        </p>
      )}
      <p class={`waiting ${heard ? "ok" : ""}`} role="status">
        {heard ? (
          <>
            ✓ got {heard.type ?? heard.kind} from {heard.job ? <NodeLink id={heard.job} /> : "a dataset"},{" "}
            {clock(heard.time)}
          </>
        ) : (
          "◔ waiting for the first event…"
        )}
      </p>
    </div>
  );
}
