// Every page, on the demo's data, in a real browser: it shows what it should, without errors, and passes axe in both themes.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  axe,
  demo,
  lineagePath,
  MISSING,
  openBrowser,
  openPage,
  type Served,
  SHOTS,
  send,
  serve,
} from "./harness.ts";

const TABLE = ["s3://lake", "gold/revenue_by_day"] as const;

let browser: Browser;
let server: Served;
const errors: string[] = [];

describe.skipIf(MISSING)("pages", () => {
  let incident = "";
  let run = "";
  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), serve()]);
    await send(server.url, demo());
    await fetch(`${server.url}/api/v1/lineage`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"eventTime": "yesterday", "job": {"namespace": "a", "name": "b"}}',
    });
    const found = (await (await fetch(`${server.url}/hw/v1/incidents`)).json()) as {
      incidents: { id: string; kind: string }[];
    };
    incident = found.incidents.find((each) => each.kind === "test")!.id;
    run = ((await (await fetch(`${server.url}/hw/v1/runs?state=FAIL`)).json()) as { id: string }[])[0]!.id;
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  afterEach(() => {
    expect(errors.splice(0)).toEqual([]);
  });

  const pages: [string, () => string, string][] = [
    ["home", () => "/", "not_null(day) on gold/revenue_by_day"],
    ["explorer", () => lineagePath("dataset", ...TABLE), "silver/orders_paid"],
    ["explorer-columns", () => `${lineagePath("dataset", ...TABLE)}?columns=1&runs=1`, "placed_at"],
    ["explorer-list", () => `${lineagePath("dataset", ...TABLE)}?view=list`, "finance.main.revenue"],
    ["explorer-tree", () => `${lineagePath("dataset", ...TABLE)}?view=tree&up=3`, "finance.main.revenue"],
    ["explorer-impact", () => `${lineagePath("dataset", ...TABLE)}?mode=impact`, "What it breaks"],
    ["explorer-diff", () => `${lineagePath("dataset", ...TABLE)}?vs=2026-03-02T05:21:00Z`, "new edge"],
    ["explorer-runs", () => `${lineagePath("dataset", ...TABLE)}?grain=run`, "aggregate"],
    ["datasets", () => "/datasets", "finance.main.revenue"],
    ["jobs", () => "/jobs?q=revenue", "finance.revenue"],
    ["dataset", () => `/datasets/${TABLE.map(encodeURIComponent).join("/")}`, "silver/orders_paid · paid"],
    [
      "dataset-history",
      () => `/datasets/${TABLE.map(encodeURIComponent).join("/")}?tab=history`,
      "3 columns",
    ],
    [
      "dataset-tests",
      () => `/datasets/${TABLE.map(encodeURIComponent).join("/")}?tab=tests`,
      "not_null(day)",
    ],
    ["dataset-runs", () => `/datasets/${TABLE.map(encodeURIComponent).join("/")}?tab=runs`, "wrote"],
    ["job", () => "/jobs/checks/gold.revenue_by_day", "1 of 2 checks failed"],
    ["runs", () => "/runs?state=FAIL", "gold.revenue_by_day"],
    ["run", () => `/runs/${run}`, "1 of 2 checks failed"],
    ["run-events", () => `/runs/${run}?tab=events`, "FAIL"],
    ["events", () => "/events", "shop.orders-source"],
    ["rejected", () => "/rejected", "eventTime"],
    ["incidents", () => "/incidents", "not_null(day)"],
    ["incident", () => `/incidents/${incident}`, "makes the column"],
    ["start", () => "/start?engine=dlt", "headwater[dlt]"],
    ["start-connect", () => "/start?engine=connect", "headwater connect watch"],
    ["admin", () => "/admin", "nobody is asked for one"],
    ["admin-keys", () => "/admin?tab=keys", "None was made yet"],
    ["admin-names", () => "/admin?tab=names", "Alias rules"],
    ["admin-deliveries", () => "/admin?tab=deliveries", "No webhooks"],
    ["admin-settings", () => "/admin?tab=settings", "auto"],
    ["admin-audit", () => "/admin?tab=audit", "Nothing yet"],
    ["explorer-unknown", () => lineagePath("dataset", "nobody", "knows"), "no node is called"],
    ["unknown", () => "/datasets/nobody/knows", "no node is called"],
  ];

  test.each(pages)("%s", async (name, path, shows) => {
    const page = await openPage(browser, errors, { colorScheme: "light" });
    await page.goto(server.url + path());
    await page.getByText(shows, { exact: false }).first().waitFor({ timeout: 20_000 });
    await page.waitForTimeout(300);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(await axe(page)).toEqual([]);
    await page.screenshot({ path: join(SHOTS, `${name}.png`) });
    await page.getByRole("button", { name: /^Theme/ }).click();
    await page.getByRole("button", { name: /^Theme/ }).click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    expect(await axe(page)).toEqual([]);
    await page.screenshot({ path: join(SHOTS, `${name}-dark.png`) });
    await page.context().close();
  });

  test("incidents on a phone", async () => {
    const page = await openPage(browser, errors, {
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
    });
    await page.goto(`${server.url}/incidents`);
    await page.getByRole("link", { name: /not_null\(day\)/ }).tap();
    await page.getByText("makes the column").first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.getByRole("button", { name: "Resolve" }).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.screenshot({ path: join(SHOTS, "incident-phone.png"), fullPage: true });
    await page.context().close();
  });
});
