// api/client: a question -> the server's answer, or a Problem that says what is wrong in the server's own words.
import { signal } from "@preact/signals";

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, "");
const KEPT = "headwater.key";

/** The reader's key, kept for this tab alone. */
export const key = signal<string>(sessionStorage.getItem(KEPT) ?? "");
/** Whether the server asked for a key, and why. */
export const wanted = signal<string>("");

export function useKey(text: string): void {
  key.value = text.trim();
  if (key.value) sessionStorage.setItem(KEPT, key.value);
  else sessionStorage.removeItem(KEPT);
  wanted.value = "";
}

export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly request: string,
    readonly candidates: string[] = [],
  ) {
    super(message);
  }
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

export function address(path: string, parameters: Parameters = {}): string {
  // an empty filter is none; only a search may be for nothing
  const said = Object.entries(parameters).filter(
    ([name, value]) => value !== undefined && value !== null && (value !== "" || name === "q"),
  );
  const text = new URLSearchParams(said.map(([name, value]) => [name, String(value)])).toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  return key.value ? { ...more, Authorization: `Bearer ${key.value}` } : more;
}

export async function ask<T>(path: string, parameters: Parameters = {}, abort?: AbortSignal): Promise<T> {
  return call<T>(address(path, parameters), { headers: headers(), ...(abort ? { signal: abort } : {}) });
}

export async function tell<T>(
  method: string,
  path: string,
  body: unknown,
  parameters: Parameters = {},
): Promise<T> {
  return call<T>(address(path, parameters), {
    method,
    headers: headers({ "Content-Type": "application/json" }),
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function call<T>(url: string, init: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(url, init);
  } catch (fault) {
    if (fault instanceof DOMException && fault.name === "AbortError") throw fault;
    throw new Problem("The server does not answer. It may be starting again; nothing is lost.", 0, "");
  }
  const text = await answer.text();
  const body: unknown =
    text && /json/.test(answer.headers.get("content-type") ?? "") ? JSON.parse(text) : text;
  if (answer.ok) return body as T;
  const told = (body && typeof body === "object" ? body : {}) as Record<string, unknown>;
  const message = String(told.detail ?? told.message ?? (text || answer.statusText));
  if (answer.status === 401) wanted.value = key.value ? message : "This server wants to know who you are.";
  throw new Problem(
    message,
    answer.status,
    answer.headers.get("x-correlation-id") ?? "",
    (told.candidates as string[]) ?? [],
  );
}
