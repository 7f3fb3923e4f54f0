// parts/use: a question -> what a component shows of it: waiting, an answer, or a fault; asked again when that helps.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, key, type Parameters, Problem } from "../api/client.ts";
import { live } from "../api/follow.ts";

export interface Asked<T> {
  data: T | undefined;
  fault: Problem | undefined;
  waiting: boolean;
  again: () => void;
}

/** Counts up whenever the server is back after it was away: what is shown may be old then. */
const revived = signal(0);
let was = live.peek();
live.subscribe((now) => {
  if ((was === "off" || was === "refused") && now === "on") revived.value++;
  was = now;
});

/** What the server answers; the last answer stays to be seen while a newer one is on its way. */
export function useAsk<T>(path: string | null, parameters: Parameters = {}): Asked<T> {
  const [state, setState] = useState<{ url: string; data?: T; fault?: Problem }>({ url: "" });
  const [turn, setTurn] = useState(0);
  const url = path === null ? "" : `${path} ${JSON.stringify(parameters)}`;
  const wanted = useRef(parameters);
  wanted.current = parameters;
  const who = key.value;
  const life = revived.value;
  // the key, a server that is back and `again` ask anew
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    ask<T>(path, wanted.current, stop.signal).then(
      (data) => setState({ url, data }),
      (fault: unknown) => {
        if (fault instanceof Problem)
          setState((before) => ({
            url,
            fault,
            ...(before.url === url && fault.status === 0 && before.data !== undefined
              ? { data: before.data }
              : {}),
          }));
        else if (!stop.signal.aborted) throw fault;
      },
    );
    return () => stop.abort();
  }, [url, turn, who, life]);
  const waiting = path !== null && state.url !== url;
  return {
    data: state.data,
    fault: state.url === url ? state.fault : undefined,
    waiting,
    again: () => setTurn((each) => each + 1),
  };
}

/** The time, once a minute: ages on the page go on. */
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 30_000);
