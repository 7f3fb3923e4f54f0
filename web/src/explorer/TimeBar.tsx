// explorer/TimeBar: the times at which the graph changed -> a slider to see it as it was, and a second one to compare.
import { useLayoutEffect } from "preact/hooks";
import { clock, plural } from "../format.ts";
import { useAsk } from "../parts/use.ts";
import { setView, start, view } from "./session.ts";

interface Moments {
  moments: { at: string; changes: { node: string; what: string }[] }[];
  cut: boolean;
}

export function TimeBar() {
  const asked = useAsk<Moments>(start.value ? "/hw/v1/moments" : null, { node: start.value });
  const times = asked.data?.moments ?? [];
  const { at, versus } = view.value;
  const last = times.length;
  const position = at ? closest(times, at) : last;
  const earlier = versus ? closest(times, versus) : Math.max(0, position - 1);

  // with what is seen, not after it: the next key goes on from there
  useLayoutEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (typing || event.ctrlKey || event.metaKey) return;
      if (event.key === "[") move(position - 1);
      else if (event.key === "]") move(position + 1);
      else if (event.key === "d") toggle();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });

  const move = (to: number) => {
    const next = Math.min(last, Math.max(0, to));
    const then = next >= last ? "" : times[next]!.at;
    // what is compared with is the earlier one: it goes before a time that is moved past it
    const passed = versus && then && !(momentOf(versus) < Date.parse(then));
    setView({ at: then, ...(passed ? { versus: beforeThat(next) ?? then } : {}) }, true);
  };
  /** The change before the one that made what is seen at a position; now is as the last one left it. */
  const beforeThat = (at: number) => times[Math.min(at, last - 1) - 1]?.at;
  const toggle = () => setView({ versus: versus ? "" : (beforeThat(position) ?? (at || "-24h")) });
  const changed = position < last ? times[position] : undefined;
  return (
    <div class="timebar" role="group" aria-label="Time">
      <label>
        As of{" "}
        <input
          type="range"
          min={0}
          max={last}
          value={position}
          disabled={!last}
          aria-valuetext={at ? clock(at) : "now"}
          onInput={(event) => move(Number(event.currentTarget.value))}
        />
      </label>
      <output>{at ? clock(at) : "now"}</output>
      {changed && <span class="muted">{plural(changed.changes.length, "change")} then</span>}
      <button type="button" aria-pressed={Boolean(versus)} onClick={toggle} title="Compare two times (d)">
        Compare
      </button>
      {versus && (
        <>
          <label>
            with{" "}
            <input
              type="range"
              min={0}
              max={Math.max(0, Math.min(position, last) - 1)}
              value={earlier}
              aria-valuetext={clock(versus)}
              onInput={(event) => {
                const found = times[Number(event.currentTarget.value)];
                if (found) setView({ versus: found.at }, true);
              }}
            />
          </label>
          <output>{/^-\d/.test(versus) ? versus : clock(versus)}</output>
          {["-1h", "-24h", "-7d"].map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={versus === each}
              onClick={() => setView({ versus: each })}
            >
              {each}
            </button>
          ))}
          <span class="legend">
            <span class="added">+ added</span> <span class="removed">− gone</span>{" "}
            <span class="changed">~ changed</span>
          </span>
        </>
      )}
      {at && (
        <button type="button" onClick={() => setView({ at: "" })}>
          Back to now
        </button>
      )}
      <span class="muted">{last ? plural(last, "change") : "no changes known"}</span>
    </div>
  );
}

const SPANS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** When a time is, in milliseconds; also one that is so long ago: -24h. */
function momentOf(text: string): number {
  const ago = /^-(\d+)([smhdw])$/.exec(text);
  return ago ? Date.now() - Number(ago[1]) * SPANS[ago[2]!]! * 1000 : Date.parse(text);
}

function closest(times: Moments["moments"], at: string): number {
  const wanted = momentOf(at);
  if (Number.isNaN(wanted)) return 0;
  let found = 0;
  times.forEach((each, index) => {
    if (Date.parse(each.at) <= wanted) found = index;
  });
  return found;
}
