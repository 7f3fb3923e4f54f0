// harness: a store of its own, a real server over it, and a real browser: what every browser test begins with.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const SHOTS = join(ROOT, "web", "shots");
const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

/** The browser of this machine: tools that bring their own are not needed. */
export const CHROMIUM = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => path && existsSync(path));
if (!CHROMIUM && process.env.HEADWATER_REQUIRE_LIVE === "1")
  throw new Error("needs Chromium; get it with: apt install chromium");
export const MISSING = !CHROMIUM;

export async function openBrowser(): Promise<Browser> {
  mkdirSync(SHOTS, { recursive: true });
  return chromium.launch({
    executablePath: CHROMIUM!,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export interface Served {
  url: string;
  folder: string;
  stop: () => Promise<void>;
  /** Stop it and start it again on the same port, over the same store. */
  restart: (pause: number) => Promise<void>;
  headwater: (...words: string[]) => Promise<string>;
}

export const serve = (...words: string[]): Promise<Served> => serveWith("", ...words);

/** With a headwater.toml of its own. */
export async function serveWith(config: string, ...words: string[]): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), "headwater-web-"));
  const store = `sqlite:///${folder}/web.db`;
  writeFileSync(join(folder, "headwater.toml"), config);
  const environment = { ...process.env, HOME: folder, HEADWATER_CONFIG: join(folder, "headwater.toml") };
  let child: ChildProcess;
  const begin = (port: string): Promise<string> =>
    new Promise((resolve, reject) => {
      child = spawn(PYTHON, ["-m", "headwater", "serve", "--store", store, "--port", port, ...words], {
        env: environment,
        stdio: ["ignore", "ignore", "pipe"],
      });
      let told = "";
      child.stderr!.on("data", (piece: Buffer) => {
        told += piece;
        const found = /at (http:\/\/\S+)/.exec(told);
        if (found) resolve(found[1]!);
      });
      child.on("exit", () => reject(new Error(`the server did not start: ${told}`)));
    });
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null) return resolve();
      child.on("exit", () => resolve());
      child.kill("SIGTERM");
    });
  const headwater = (...said: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const run = spawn(
        PYTHON,
        ["-m", "headwater", ...said, ...(said.includes("--url") ? [] : ["--store", store])],
        { env: environment },
      );
      let [out, err] = ["", ""];
      run.stdout.on("data", (piece: Buffer) => {
        out += piece;
      });
      run.stderr.on("data", (piece: Buffer) => {
        err += piece;
      });
      run.on("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`${said.join(" ")}: ${err}`))));
    });
  if (words.includes("--read-only") || words.some((word) => word.startsWith("--host")))
    await headwater("store", "migrate");
  const url = await begin("0");
  return {
    url,
    folder,
    headwater,
    stop: async () => {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
    restart: async (pause) => {
      await end();
      await new Promise((resolve) => setTimeout(resolve, pause));
      await begin(new URL(url).port);
    },
  };
}

export interface Catalogue {
  url: string;
  /** Aspects of proposals that it took. */
  taken: string[];
  /** Aspects that it refuses. */
  refuses: Set<string>;
  stop: () => Promise<void>;
}

/** A server that takes proposals as DataHub's does, and refuses some. */
export async function catalogue(...refused: string[]): Promise<Catalogue> {
  const taken: string[] = [];
  const refuses = new Set(refused);
  const server = createServer(async (request, answer) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const told = JSON.parse(Buffer.concat(pieces).toString()) as {
      proposals?: { aspectName: string }[];
      proposal?: { aspectName: string };
    };
    const elements = (told.proposals ?? [told.proposal!]).map(({ aspectName }) => {
      if (refuses.has(aspectName))
        return { status: 422, error: { message: `<b>${aspectName}</b> is not allowed here` } };
      taken.push(aspectName);
      return { status: 200 };
    });
    answer.setHeader("Content-Type", "application/json");
    answer.end(JSON.stringify({ elements }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `datahub+rest://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    refuses,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export type Event = Record<string, unknown>;

/** The recorded day of a small shop that `headwater demo --recorded` shows. */
export function demo(): Event[] {
  const text = readFileSync(join(ROOT, "src", "headwater", "cli", "recorded", "shop.jsonl"), "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Event);
}

export async function send(
  url: string,
  events: Event[],
  headers: Record<string, string> = {},
): Promise<void> {
  for (let at = 0; at < events.length; at += 500) {
    const answer = await fetch(`${url}/api/v1/lineage/batch`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(events.slice(at, at + 500)),
    });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  }
}

let runs = 0;
/** One completed run. */
export function ran(
  job: string,
  inputs: string[],
  outputs: string[],
  time: Date | string,
  more: { columns?: string[]; type?: string; namespace?: string } = {},
): Event {
  const dataset = (name: string, written: boolean) => ({
    namespace: more.namespace ?? "web",
    name,
    facets: more.columns
      ? {
          schema: { fields: more.columns.map((column) => ({ name: column, type: "bigint" })) },
          ...(written && inputs.length
            ? {
                columnLineage: {
                  fields: Object.fromEntries(
                    more.columns.map((column) => [
                      column,
                      {
                        inputFields: [
                          {
                            namespace: more.namespace ?? "web",
                            name: inputs[0],
                            field: column,
                            transformations: [{ type: "DIRECT", subtype: "IDENTITY" }],
                          },
                        ],
                      },
                    ]),
                  ),
                },
              }
            : {}),
        }
      : {},
  });
  runs += 1;
  return {
    eventTime: typeof time === "string" ? time : time.toISOString(),
    eventType: more.type ?? "COMPLETE",
    run: { runId: `01890000-0000-7000-8000-${String(runs).padStart(12, "0")}` },
    job: { namespace: more.namespace ?? "web", name: job },
    inputs: inputs.map((name) => dataset(name, false)),
    outputs: outputs.map((name) => dataset(name, true)),
  };
}

export const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000);

/** A page that fails its test by any error of its script or of the content policy. */
export async function openPage(
  browser: Browser,
  errors: string[],
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    // answers of 4xx and a server that is away are told by the browser itself
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text()))
      errors.push(message.text());
  });
  return page;
}

export const lineagePath = (kind: string, namespace: string, name: string): string =>
  `/lineage/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds against WCAG A and AA. */
export async function axe(page: Page): Promise<string[]> {
  await page.evaluate(AXE); // by the debugger, past the content policy
  return page.evaluate(async () => {
    const run = (
      globalThis as unknown as {
        axe: {
          run: (
            on: Document,
            options: unknown,
          ) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
        };
      }
    ).axe;
    // cards shrink with the picture; the same can be reached at full size in the list and the tree
    const sizes = { rules: { "target-size": { enabled: !document.querySelector(".layer .card") } } };
    const { violations } = await run.run(document, {
      ...sizes,
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    });
    return violations.map(
      (each) =>
        `${each.id}: ${each.nodes[0]!.html.slice(0, 200)} ${each.nodes[0]!.failureSummary.slice(0, 200)}`,
    );
  });
}
