// parts/Search: words as they are typed -> datasets, jobs and columns to go to, by mouse or keys.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go, href, query, say } from "../address.ts";
import { ask, Problem } from "../api/client.ts";
import type { Hit } from "../api/model.ts";
import { clip } from "../format.ts";
import { columnWay, lineageOf, pageOf } from "../nodes.ts";
import { writeRoute } from "../route.ts";
import { Kind } from "./Words.tsx";

interface Choice {
  hit: Hit;
  /** A column of it that was found. */
  column?: string;
}

/** What there is to choose: each hit, and each of its columns that fits. */
export function choices(hits: Hit[]): Choice[] {
  return hits.flatMap((hit) => {
    const columns = hit.matches
      .filter((each) => each.in === "column")
      .map((each): Choice => ({ hit, column: each.text }));
    return hit.match === "text" && columns.length
      ? [...columns.slice(0, 3), { hit }]
      : [{ hit }, ...columns.slice(0, 3)];
  });
}

/** What people paste from a log. */
const RUN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

function runOf(id: string): Choice {
  const nothing = { namespace: "", lastSeen: null, matches: [], description: null, owners: [], tags: [] };
  return { hit: { ...nothing, id: `run:${id}`, type: "RUN", name: id, match: "exact" } };
}

function addressOf({ hit, column }: Choice): string {
  if (hit.type === "RUN") return href(writeRoute(pageOf(hit.id)));
  return href(writeRoute(lineageOf(hit.id)), column ? columnWay(column) : {});
}

export function Search({
  big = false,
  hidden = false,
  label = "Search datasets, jobs, columns, SQL",
}: {
  big?: boolean;
  /** Keeps its place, but is not there: the page has a larger one. */
  hidden?: boolean;
  label?: string;
}) {
  // what is searched for on the home page stands in its address
  const [words, setWords] = useState(() => (big ? (query.peek().get("q") ?? "") : ""));
  const [found, setFound] = useState<Choice[]>([]);
  /** The words that `found` answers: what is shown may answer the beginning of what is typed. */
  const [answered, setAnswered] = useState("");
  /** The words at which Enter was pressed before their answer was there. */
  const hurried = useRef("");
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState(false);
  const [note, setNote] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const list = big ? "home-found" : "top-found";

  // before the page is painted: what is typed the moment it shows is not lost
  useLayoutEffect(() => {
    if (big) input.current?.focus();
  }, [big]);

  useEffect(() => {
    if (big) return;
    const jump = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (
        (event.key === "/" && !typing) ||
        (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))
      ) {
        event.preventDefault();
        (document.querySelector<HTMLInputElement>("#home-search") ?? input.current)?.focus();
      }
    };
    addEventListener("keydown", jump);
    return () => removeEventListener("keydown", jump);
  }, [big]);

  useEffect(() => {
    if (!words.trim()) {
      setFound([]);
      setAnswered("");
      setNote("");
      return;
    }
    const stop = new AbortController();
    const wait = setTimeout(() => {
      const [, kind, rest] = /^([dj]):\s*(.*)$/.exec(words) ?? [null, "", words];
      const type = kind === "d" ? "dataset" : kind === "j" ? "job" : undefined;
      ask<Hit[]>("/hw/v1/search", { q: rest, type, limit: 20 }, stop.signal).then(
        (hits) => {
          const runs = RUN.test(rest!.trim()) ? [runOf(rest!.trim().toLowerCase())] : [];
          const chosen = [...runs, ...choices(hits)];
          if (hurried.current === words && chosen.length) return take(chosen[0]);
          setFound(chosen);
          setAnswered(words);
          setAt(0);
          setNote(hits.length || runs.length ? "" : "Nothing is called so. Try the beginning of a word.");
        },
        (fault: unknown) => fault instanceof Problem && setNote(fault.message),
      );
    }, 80);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [words]);

  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    setOpen(false);
    setWords("");
    input.current?.blur();
    go(addressOf(choice));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      // one that was stepped to is meant; else the first that fits all that was typed
      if (answered === words || at > 0) take(found[at]);
      else hurried.current = words;
    } else if (event.key === "Escape") {
      hurried.current = "";
      setOpen(false);
      input.current?.blur();
    }
  };
  const shown = open && words.trim() !== "";
  return (
    <div class={`search ${big ? "big" : ""} ${hidden ? "gone" : ""}`}>
      <input
        ref={input}
        id={big ? "home-search" : "top-search"}
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={shown && found.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        {...(shown && found.length ? { "aria-activedescendant": `${list}-${at}` } : {})}
        placeholder={big ? label : "Search  /"}
        autocomplete="off"
        spellcheck={false}
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setAt(0);
          hurried.current = "";
          setOpen(true);
          if (big) say({ q: event.currentTarget.value });
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setTimeout(() => setOpen(false), 150)}
        onKeyDown={keys}
      />
      <div class="found" hidden={!shown || (!found.length && !note)}>
        <div id={list} role="listbox" aria-label="Found">
          {found.map((choice, index) => (
            <div
              key={`${choice.hit.id} ${choice.column ?? ""}`}
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === at}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(choice)}
              onKeyDown={keys}
            >
              <Kind kind={choice.hit.type.toLowerCase() as "dataset" | "job" | "run"} />{" "}
              <strong>
                <bdi>
                  {clip(choice.column ? `${choice.hit.name} · ${choice.column}` : choice.hit.name, 70)}
                </bdi>
              </strong>{" "}
              <small class="muted">
                {choice.column ? (
                  "column, traced to its sources"
                ) : choice.hit.type === "RUN" ? (
                  "the run with this id"
                ) : (
                  <bdi>{clip(choice.hit.namespace, 40)}</bdi>
                )}
                {!choice.column && why(choice.hit)}
              </small>
            </div>
          ))}
        </div>
        {note && <p class="muted">{note}</p>}
      </div>
    </div>
  );
}

function why(hit: Hit): string {
  const first = hit.matches.find((each) => !["name", "column", "namespace"].includes(each.in));
  return hit.match === "text" && first ? ` · ${first.in}: ${clip(first.text, 50)}` : "";
}
