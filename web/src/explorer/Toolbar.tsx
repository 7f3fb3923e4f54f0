// explorer/Toolbar: what is shown and how -> controls; each changes the address, and nothing else.
import { clip, plural } from "../format.ts";
import { Copy } from "../parts/Copy.tsx";
import { exportAs, type Format } from "./exports.ts";
import { showAll } from "./look.ts";
import { command } from "./questions.ts";
import { setView, standing, start, tidied, view } from "./session.ts";
import { type Grain, MOST_HOPS } from "./view.ts";

const GRAINS: [Grain, string][] = [
  ["application", "applications"],
  ["all", "jobs, datasets"],
  ["dataset", "datasets only"],
  ["job", "jobs only"],
  ["run", "runs"],
];
const FORMATS: [Format, string][] = [
  ["png", "PNG"],
  ["svg", "SVG"],
  ["json", "JSON"],
  ["mmd", "Mermaid"],
  ["txt", "text tree"],
];

export function Toolbar() {
  const { up, down, grain, columns, runs, form, impact, column } = view.value;
  const graph = standing.value;
  const node = graph?.nodes.get(graph.start);
  return (
    <div class="toolbar" role="toolbar" aria-label="What is shown">
      <h1 title={start.value}>
        <bdi>{clip(node?.name ?? start.value.slice(start.value.lastIndexOf(":") + 1), 44)}</bdi>
        {column && <span class="muted"> · {clip(column, 30)}</span>}
        {graph && <span class="muted count"> {plural(graph.nodes.size, "node")}</span>}
      </h1>
      {column ? (
        <button type="button" onClick={() => setView({ column: "", columns: true })}>
          All columns
        </button>
      ) : (
        <>
          <Hops label="up" value={up} disabled={impact} set={(value) => setView({ up: value })} />
          <Hops label="down" value={down} disabled={false} set={(value) => setView({ down: value })} />
        </>
      )}
      <label>
        <span class="unseen">Granularity</span>
        <select
          value={grain}
          onChange={(event) =>
            setView({ grain: event.currentTarget.value as Grain, expanded: [], selected: "" })
          }
        >
          {GRAINS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <Toggle
        on={columns || Boolean(column)}
        label="Columns"
        set={(on) => setView({ columns: on, column: "", trace: null })}
      />
      <Toggle on={runs} label="Run states" set={(on) => setView({ runs: on })} />
      <Toggle on={impact} label="Impact" set={(on) => setView({ impact: on })} />
      <fieldset class="choice">
        <legend class="unseen">Form</legend>
        {(["graph", "list", "tree"] as const).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={form === each}
            onClick={() => setView({ form: each })}
          >
            {each}
          </button>
        ))}
      </fieldset>
      <button type="button" onClick={showAll} title="Show all of it (f)">
        Fit
      </button>
      <button
        type="button"
        title="Lay it out anew"
        onClick={() => {
          tidied.value++;
        }}
      >
        Tidy
      </button>
      <label>
        <span class="unseen">Export</span>
        <select
          value=""
          onChange={(event) => {
            void exportAs(event.currentTarget.value as Format);
            event.currentTarget.value = "";
          }}
        >
          <option value="">Export…</option>
          {FORMATS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <Copy
        text={() => command(start.value, view.value, document.baseURI.replace(/\/$/, ""))}
        label="Copy CLI"
      />
    </div>
  );
}

function Hops({
  label,
  value,
  disabled,
  set,
}: {
  label: string;
  value: number;
  disabled: boolean;
  set: (value: number) => void;
}) {
  return (
    <span class="hops">
      <button
        type="button"
        disabled={disabled || value === 0}
        aria-label={`Fewer hops ${label}`}
        onClick={() => set(value - 1)}
      >
        −
      </button>
      <span aria-live="polite">
        {value} {label}
      </span>
      <button
        type="button"
        disabled={disabled || value >= MOST_HOPS}
        aria-label={`More hops ${label}`}
        onClick={() => set(value + 1)}
      >
        +
      </button>
    </span>
  );
}

function Toggle({ on, label, set }: { on: boolean; label: string; set: (on: boolean) => void }) {
  return (
    <button type="button" aria-pressed={on} onClick={() => set(!on)}>
      {label}
    </button>
  );
}
