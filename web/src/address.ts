// address: the browser's location <-> one signal; links inside the base become moves without a load.
import { computed, signal } from "@preact/signals";
import { readRoute } from "./route.ts";

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, "");

interface Here {
  path: string;
  query: string;
}

const current = (): Here => ({
  path: location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) || "/" : location.pathname,
  query: location.search,
});

export const here = signal<Here>(current());
export const route = computed(() => readRoute(here.value.path));
export const query = computed(() => new URLSearchParams(here.value.query));

/** The address of something below the base, as a link needs it. */
export function href(path: string, wanted?: URLSearchParams | Record<string, string | undefined>): string {
  const text = written(wanted);
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

function written(wanted?: URLSearchParams | Record<string, string | undefined>): string {
  if (!wanted) return "";
  if (wanted instanceof URLSearchParams) return wanted.toString();
  const said = Object.entries(wanted).filter((each): each is [string, string] => Boolean(each[1]));
  return new URLSearchParams(said).toString();
}

/** Go to an address that `href` made. */
export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  here.value = current();
  if (!replace) scrollTo(0, 0);
}

/** Say something of the page in its own address, so that a copied link shows the same. */
export function say(changes: Record<string, string | undefined>, replace = true): void {
  const next = new URLSearchParams(here.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  go(href(here.value.path, next), replace);
}

export function followLinks(): void {
  addEventListener("popstate", () => {
    here.value = current();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (
      !link.pathname.startsWith(BASE) ||
      /^\/(hw|api|openapi|metrics)\b/.test(link.pathname.slice(BASE.length))
    )
      return;
    event.preventDefault();
    go(link.href);
    document.querySelector<HTMLElement>("main")?.focus();
  });
}
