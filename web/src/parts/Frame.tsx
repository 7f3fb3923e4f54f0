// parts/Frame: a page -> the page with what stands around every page: where one is, search, theme, key, the server's state.
import { effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { here, href, route } from "../address.ts";
import { key, useKey, wanted } from "../api/client.ts";
import { live } from "../api/follow.ts";
import { Caught } from "./Caught.tsx";
import { Copy } from "./Copy.tsx";
import { Keys } from "./Keys.tsx";
import { Search } from "./Search.tsx";

type Theme = "system" | "light" | "dark";
const THEMES: Theme[] = ["system", "light", "dark"];
export const theme = signal<Theme>((localStorage.getItem("headwater.theme") as Theme) || "system");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
/** Counts up when colours change: what is drawn on canvas must be drawn anew. */
export const repaint = signal(0);

effect(() => {
  const dark = theme.value === "dark" || (theme.value === "system" && prefersDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  localStorage.setItem("headwater.theme", theme.value);
  repaint.value = repaint.peek() + 1;
});
prefersDark.addEventListener("change", () => {
  theme.value = theme.peek() === "system" ? "light" : theme.peek();
  theme.value = "system";
});

const PLACES: [string, string, string[]][] = [
  ["/", "Home", ["home"]],
  ["/datasets", "Datasets", ["datasets", "dataset"]],
  ["/jobs", "Jobs", ["jobs", "job"]],
  ["/runs", "Runs", ["runs", "run"]],
  ["/incidents", "Incidents", ["incidents", "incident"]],
  ["/events", "Events", ["events"]],
  ["/rejected", "Rejected", ["rejected"]],
  ["/start", "Use your data", ["start"]],
  ["/admin", "Admin", ["admin"]],
];

export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>("main")?.focus()}>
        Skip to the page
      </button>
      <header class="top">
        <a class="brand" href={href("/")} aria-label="Headwater, home">
          Headwater
        </a>
        <nav aria-label="Pages">
          {PLACES.map(([path, label, pages]) => (
            <a
              key={path}
              href={href(path)}
              aria-current={pages.includes(route.value.page) ? "page" : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
        <Search hidden={route.value.page === "home"} />
        <span
          class={`live ${live.value}`}
          role="status"
          title={
            {
              on: "Changes are shown as they come",
              off: "The server does not answer; trying again",
              refused: "The server does not tell of changes to this key, or not so often; trying again",
              connecting: "Connecting",
            }[live.value]
          }
        >
          <span aria-hidden="true">●</span>{" "}
          {{ on: "live", off: "away", refused: "not live", connecting: "…" }[live.value]}
        </span>
        <Copy text={() => location.href} label="Copy link" />
        <button
          type="button"
          aria-label={`Theme: ${theme.value}`}
          title={`Theme: ${theme.value}`}
          onClick={() => {
            theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
          }}
        >
          {{ system: "◐", light: "☀", dark: "☾" }[theme.value]}
        </button>
        <Keys />
        {key.value && (
          <button type="button" onClick={() => useKey("")}>
            Forget key
          </button>
        )}
      </header>
      {live.value === "off" && !wanted.value && (
        <p class="away" role="alert">
          The server does not answer. This page shows what it knew, and goes on by itself when the server is
          back.
        </p>
      )}
      <main id="main" tabIndex={-1}>
        <Caught at={here.value.path}>{wanted.value ? <AskKey /> : children}</Caught>
      </main>
    </>
  );
}

function AskKey() {
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("key") as HTMLInputElement;
        useKey(field.value);
      }}
    >
      <h1>A key, please</h1>
      <p role="alert">{wanted.value}</p>
      <label>
        Key <input name="key" type="password" autocomplete="off" required />
      </label>
      <button type="submit" class="strong">
        Go on
      </button>
      <p class="muted">
        It stays in this tab. An administrator makes one with{" "}
        <code>headwater keys create NAME --scope read</code>.
      </p>
    </form>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Headwater` : "Headwater";
  }, [title]);
}
