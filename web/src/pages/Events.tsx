// pages/Events: the raw log by job, run, dataset, kind and time -> rows that open to the event as it came; the refused ones, too.
import { useEffect, useRef, useState } from "preact/hooks";
import { query, say } from "../address.ts";
import { address, ask, headers, type Parameters, Problem, tell } from "../api/client.ts";
import type { LogEntry, Status } from "../api/model.ts";
import { bytes, clip, clock, plural } from "../format.ts";
import { useTitle } from "../parts/Frame.tsx";
import { save } from "../parts/files.ts";
import { Json } from "../parts/Json.tsx";
import { useNews } from "../parts/News.tsx";
import { Rows } from "../parts/Rows.tsx";
import { Answer, Empty, Fault, Waiting } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { NodeLink, RunLink, Time } from "../parts/Words.tsx";
import { useMayChange } from "./Head.tsx";

/** What Marquez's UI calls it in its links. */
const MARQUEZ: Record<string, string> = { since: "dateFrom", until: "dateTo" };

export function Events() {
  useTitle("Events");
  const said = (name: string) => query.value.get(name) ?? query.value.get(MARQUEZ[name] ?? name) ?? "";
  const news = useNews();
  const names = ["job", "run", "dataset", "since", "until"];
  const parameters = Object.fromEntries([...names, "kind"].map((name) => [name, said(name)]));
  return (
    <div class="page">
      <h1>Events</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          kind{" "}
          <select value={said("kind")} onChange={(event) => say({ kind: event.currentTarget.value })}>
            <option value="">any</option>
            {["run", "job", "dataset", "command"].map((kind) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
        {names.map((name) => (
          <label key={name}>
            {name}{" "}
            <input
              type="search"
              value={said(name)}
              placeholder={/since|until/.test(name) ? "-24h, 2026-01-31" : ""}
              onChange={(event) =>
                say({
                  ...(MARQUEZ[name] ? { [MARQUEZ[name]]: undefined } : {}),
                  [name]: event.currentTarget.value,
                })
              }
            />
          </label>
        ))}
      </form>
      {news > 0 && <p class="muted">{plural(news, "change")} came in since the page was opened.</p>}
      <EventList parameters={parameters} />
    </div>
  );
}

interface Page {
  events: LogEntry[];
  next: string | null;
}

/** Pages of the log, the next one asked for when the end comes into sight. */
export function EventList({ parameters }: { parameters: Parameters }) {
  const asked = JSON.stringify(parameters);
  const [state, setState] = useState<{
    asked: string;
    events: LogEntry[];
    next: string | null;
    fault?: Problem;
  }>({ asked: "", events: [], next: null });
  const chosen = Number(query.value.get("event")) || null;
  const setChosen = (number: number | null) => say({ event: number ? String(number) : undefined });
  const underway = useRef<{ stop: AbortController; cursor: string | null } | null>(null);
  const load = async (cursor: string | null): Promise<void> => {
    // the end comes into sight more than once while its page is on the way
    if (cursor && underway.current?.cursor === cursor) return;
    underway.current?.stop.abort();
    const stop = new AbortController();
    underway.current = { stop, cursor };
    const look = (from: string | null) =>
      ask<Page>(
        "/hw/v1/events",
        { ...(JSON.parse(asked) as Parameters), cursor: from, limit: 200 },
        stop.signal,
      );
    try {
      let page = await look(cursor);
      // one answer looks at so many entries and no more: where none of them fits, those after them may
      while (!page.events.length && page.next) page = await look(page.next);
      setState((before) => ({
        asked,
        events: cursor ? [...before.events, ...page.events] : page.events,
        next: page.next,
      }));
    } catch (fault) {
      if (fault instanceof Problem) setState((before) => ({ ...before, asked, fault }));
      else if (!stop.signal.aborted) throw fault;
    }
  };
  // the question decides
  useEffect(() => {
    void load(null);
    return () => underway.current?.stop.abort();
  }, [asked]);
  if (state.asked !== asked) return <Waiting rows={8} />;
  if (state.fault) return <Fault fault={state.fault} again={() => void load(null)} />;
  if (!state.events.length && !state.next) return <Empty>No event fits.</Empty>;
  return (
    <div class="log">
      <p>
        <button
          type="button"
          onClick={() =>
            save(
              "events.jsonl",
              `${state.events.map((each) => JSON.stringify(each.event)).join("\n")}\n`,
              "application/x-ndjson",
            )
          }
        >
          Save these {state.events.length}
        </button>{" "}
        <button type="button" onClick={() => void saveAll()}>
          Save the whole log
        </button>
      </p>
      <Rows
        items={state.events}
        height={40}
        label="Events in the order of their times"
        more={() => {
          if (state.next) void load(state.next);
        }}
        row={(entry) => (
          <>
            <button
              type="button"
              class="cell"
              aria-expanded={entry.number === chosen}
              onClick={() => setChosen(entry.number === chosen ? null : entry.number)}
            >
              {entry.number}
            </button>
            <span class="cell" title={entry.time}>
              {clock(entry.time)}
            </span>
            <span class="cell">{entry.type ?? entry.kind}</span>
            <span class="grow">{subjectOf(entry) ? <NodeLink id={subjectOf(entry)} most={60} /> : ""}</span>
            <span class="cell">{entry.run && <RunLink id={entry.run} />}</span>
          </>
        )}
      />
      {chosen && <One number={chosen} known={state.events.find((each) => each.number === chosen)} />}
    </div>
  );
}

/** One event as it came; asked for by its number where a link names one that is not in sight. */
function One({ number, known }: { number: number; known: LogEntry | undefined }) {
  const asked = useAsk<Page>(known ? null : "/hw/v1/events", { number });
  const entry = known ?? asked.data?.events[0];
  return (
    <section class="one" aria-label={`Event ${number}`}>
      <h2>Event {number}</h2>
      {entry ? (
        <>
          <button
            type="button"
            onClick={() =>
              save(`event-${number}.json`, JSON.stringify(entry.event, null, 2), "application/json")
            }
          >
            Save
          </button>
          <Json value={entry.event} open={2} />
        </>
      ) : (
        <Answer of={asked}>{() => <Empty>It is kept no more, or never was.</Empty>}</Answer>
      )}
    </section>
  );
}

/** What an entry is about. */
const subjectOf = (entry: LogEntry): string => entry.job ?? entry.dataset ?? entry.outputs?.[0] ?? "";

async function saveAll(): Promise<void> {
  const answer = await fetch(address("/hw/v1/export"), { headers: headers() });
  if (answer.ok) save("headwater-log.jsonl", await answer.blob());
}

export function Rejected() {
  useTitle("Rejected events");
  const asked = useAsk<Status>("/hw/v1/status", { rejects: 500 });
  const may = useMayChange();
  const chosen = Number(query.value.get("id")) || null;
  const [draft, setDraft] = useState<{ of: number; text: string } | null>(null);
  const [note, setNote] = useState("");
  return (
    <div class="page">
      <h1>Rejected events</h1>
      <p class="muted">
        What could not be taken is kept with the reason. Correct the sender; what was lost meanwhile can be
        corrected and sent here.
      </p>
      <Answer of={asked}>
        {(status) => {
          const found = status.rejected ?? [];
          if (!found.length) return <Empty>Everything that came was taken.</Empty>;
          const open = found.find((each) => each.id === chosen);
          const text = draft && draft.of === chosen ? draft.text : open ? pretty(open.payload) : "";
          return (
            <>
              <Rows
                items={found}
                height={44}
                label="Rejected events, the newest first"
                row={(each) => (
                  <>
                    <button
                      type="button"
                      class="cell"
                      aria-expanded={each.id === chosen}
                      onClick={() => {
                        say({ id: each.id === chosen ? undefined : String(each.id) });
                        setDraft(null);
                        setNote("");
                      }}
                    >
                      Look
                    </button>
                    <span class="cell">
                      <Time of={each.last_seen} />
                    </span>
                    <span class="cell">
                      <code title={each.path}>{clip(each.path || "–", 40)}</code>
                    </span>
                    <span class="grow">{clip(each.reason, 120)}</span>
                    <span class="cell muted">
                      {bytes(each.size)}, {plural(each.times, "time")}
                    </span>
                  </>
                )}
              />
              {open && (
                <section class="one" aria-label="The event">
                  <h2>
                    <bdi>{clip(open.path ? `${open.path}: ${open.reason}` : open.reason, 400)}</bdi>
                  </h2>
                  <label>
                    What came
                    <textarea
                      rows={16}
                      spellcheck={false}
                      value={text}
                      readOnly={!may}
                      onInput={(event) => setDraft({ of: open.id, text: event.currentTarget.value })}
                    />
                  </label>
                  <p>
                    {may && (
                      <button
                        type="button"
                        class="strong"
                        onClick={() =>
                          tell<unknown>("POST", "/api/v1/lineage", text).then(
                            () => {
                              setNote("It was taken.");
                              asked.again();
                            },
                            (fault: unknown) => fault instanceof Problem && setNote(fault.message),
                          )
                        }
                      >
                        Send it again
                      </button>
                    )}{" "}
                    <button
                      type="button"
                      onClick={() => save(`rejected-${open.id}.json`, open.payload, "application/json")}
                    >
                      Save
                    </button>{" "}
                    <span role="status">{note}</span>
                  </p>
                </section>
              )}
            </>
          );
        }}
      </Answer>
    </div>
  );
}

function pretty(payload: string): string {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return payload; // often that is what is wrong with it
  }
}
