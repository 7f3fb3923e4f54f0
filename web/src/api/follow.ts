// api/follow: /hw/v1/changes -> a call for each entry as it comes in. By fetch: an EventSource can send no key.
import { signal } from "@preact/signals";
import { address, headers, type Parameters } from "./client.ts";
import type { LogEntry } from "./model.ts";
import { parse } from "./sse.ts";

export type Told = Omit<LogEntry, "event">;

/** Whether the page hears of changes at the moment; `refused` where the server answers that it shall not. */
export const live = signal<"connecting" | "on" | "off" | "refused">("connecting");

/** Follow until the returned function is called; what was missed while away comes first. */
export function follow(parameters: Parameters, heard: (entry: Told) => void): () => void {
  const stop = new AbortController();
  let last: string | undefined;
  let refused = false;
  const listen = async (): Promise<void> => {
    const more: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": last };
    const answer = await fetch(address("/hw/v1/changes", parameters), {
      headers: headers(more),
      signal: stop.signal,
    });
    refused = answer.status >= 400 && answer.status < 500;
    if (!answer.ok || !answer.body) throw new Error(String(answer.status));
    live.value = "on";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r", "");
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const message = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (message.id) last = message.id;
        if (message.event && message.event !== "hello" && message.event !== "beat")
          heard(JSON.parse(message.data));
      }
    }
  };
  const keepOn = async (): Promise<void> => {
    for (let wait = 500; !stop.signal.aborted; wait = Math.min(wait * 2, 5_000)) {
      refused = false;
      try {
        await listen();
        wait = 500;
      } catch {
        // the server is away, or wants another key: the next try may find it
      }
      if (stop.signal.aborted) return;
      live.value = refused ? "refused" : "off";
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
  void keepOn();
  return () => stop.abort();
}
