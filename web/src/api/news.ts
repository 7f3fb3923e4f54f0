// api/news: the log as it grows -> whoever wants to hear of it. One connection for the whole page.
import { effect } from "@preact/signals";
import { key, wanted } from "./client.ts";
import { follow, type Told } from "./follow.ts";

const listeners = new Set<(entry: Told) => void>();

export function startNews(): void {
  let stop: (() => void) | null = null;
  effect(() => {
    key.value; // another reader hears with another key
    stop?.();
    stop = null;
    if (wanted.value) return; // until there is a key, asking is in vain
    stop = follow({}, (entry) => {
      for (const each of listeners) each(entry);
    });
  });
}

/** Hear of each entry until the returned function is called. */
export function onNews(heard: (entry: Told) => void): () => void {
  listeners.add(heard);
  return () => {
    listeners.delete(heard);
  };
}
