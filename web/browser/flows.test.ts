// What people do: find a column's source, resolve an incident, compare two days, grow a picture, share a link, lose a server.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  demo,
  hoursAgo,
  lineagePath,
  MISSING,
  openBrowser,
  openPage,
  ran,
  type Served,
  SHOTS,
  send,
  serve,
} from "./harness.ts";

let browser: Browser;
let server: Served;
const errors: string[] = [];
const TABLE = lineagePath("dataset", "s3://lake", "gold/revenue_by_day");

const cards = (page: Page) => page.locator(".card");
const count = async (page: Page): Promise<number> =>
  Number(/\d[\d,]*/.exec((await page.locator(".toolbar .count").textContent()) ?? "")![0].replace(",", ""));
/** Where each card stands in the world, by its name. */
const places = (page: Page): Promise<Record<string, string>> =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>(".card")].map((card) => [
        card.id,
        `${card.style.left} ${card.style.top}`,
      ]),
    ),
  );

async function download(page: Page, value: string): Promise<Buffer> {
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByLabel("Export").selectOption(value),
  ]);
  return readFileSync(await file.path());
}

describe.skipIf(MISSING)("flows", () => {
  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), serve()]);
    const now = new Date();
    await send(server.url, [
      ...demo(),
      // yesterday `daily` read one table, today another one too
      ran("daily", ["orders"], ["report"], hoursAgo(30), { columns: ["id"] }),
      ran("daily", ["orders", "returns"], ["report", "extra"], hoursAgo(1), { columns: ["id", "amount"] }),
      // a hub
      ...Array.from({ length: 320 }, (_, at) => ran(`reader_${at}`, ["hub"], [`copy_${at}`], now)),
      ran("fill", ["source"], ["hub"], now),
      // a chain of 40 tables
      ...Array.from({ length: 40 }, (_, at) =>
        ran(`step_${at}`, [`table_${at}`], [`table_${at + 1}`], now, { columns: ["a", "b"] }),
      ),
      // names that try to be something else
      ran(
        '<img src=x onerror="globalThis.hurt=1">',
        ["<script>globalThis.hurt=1</script>"],
        ["\u202eevil\u202c عربي", "x".repeat(4_000)],
        now,
      ),
      ran("wide", ["narrow"], ["wide"], now, {
        columns: Array.from({ length: 500 }, (_, at) => `column_${at}`),
      }),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  afterEach(() => {
    expect(errors.splice(0)).toEqual([]);
  });

  test("find a column and trace it to its source, by keys alone", async () => {
    const page = await openPage(browser, errors);
    // keys may come as soon as the page is there: its field has the focus in the task that made it
    await page.addInitScript(() =>
      new MutationObserver((_, watch) => {
        if (!document.getElementById("home-search")) return;
        watch.disconnect();
        document.documentElement.dataset.focused = document.activeElement?.id;
      }).observe(document, { childList: true, subtree: true }),
    );
    await page.goto(server.url);
    expect(await page.locator("html").getAttribute("data-focused")).toBe("home-search");
    const answered = page.waitForResponse((each) => each.url().includes("/search?q=revenue&"));
    await page.keyboard.type("revenue");
    await answered; // an answer to its beginning may have been shown before
    const column = page.getByRole("option", { name: /gold\/revenue_by_day · revenue/ });
    await column.waitFor();
    for (let step = 0; (await column.getAttribute("aria-selected")) !== "true"; step++) {
      expect(step).toBeLessThan(20);
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    await page.getByText("/v1/payments").first().waitFor();
    expect(page.url()).toContain("c=revenue");
    await page.locator(".card .column", { hasText: "amount_cents" }).first().waitFor();
    await page.screenshot({ path: join(SHOTS, "flow-column.png") });
    await page.locator(".card .column", { hasText: "amount_cents" }).first().click();
    await page.getByRole("heading", { name: /Column amount_cents/ }).waitFor();
    expect(await page.locator(".card .column.lit").count()).toBeGreaterThan(3);
    // how it is made: the kind and the expression
    await page.locator(".card.start .column", { hasText: "revenue" }).click();
    await page.getByText("sum(paid)").waitFor();
    await page.getByText("DIRECT:AGGREGATION").first().waitFor();
    await page.context().close();
  });

  test("open an incident, see the blamed run, resolve it", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url);
    await page
      .getByRole("link", { name: /not_null\(day\)/ })
      .first()
      .click();
    await page.getByRole("heading", { name: "Blamed" }).waitFor();
    await page
      .getByRole("link", { name: "⚙ revenue.aggregate" })
      .first()
      .or(page.getByText("revenue.aggregate.gold_revenue_by_day").first())
      .first()
      .waitFor();
    await page.getByLabel("Reason").fill("a late file");
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.locator(".state", { hasText: "acknowledged" }).first().waitFor();
    await page.getByRole("button", { name: "Resolve" }).click();
    await page.locator(".state", { hasText: "resolved" }).first().waitFor();
    await page.getByText("“a late file”").waitFor();
    await page.getByRole("button", { name: "Reopen" }).click();
    await page.locator(".state", { hasText: "open" }).first().waitFor();
    await page.screenshot({ path: join(SHOTS, "flow-incident.png") });
    await page.context().close();
  });

  test("compare yesterday with today", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url + lineagePath("dataset", "web", "report"));
    await cards(page).filter({ hasText: "returns" }).waitFor();
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("button", { name: "-24h" }).click();
    await page.getByText("new edge: returns → daily").waitFor();
    await page.locator(".card.added", { hasText: "returns" }).waitFor();
    expect(await page.locator(".card.added", { hasText: "orders" }).count()).toBe(0);
    await page.screenshot({ path: join(SHOTS, "flow-diff.png") });
    // as of yesterday, the other table is not there
    await page.goto(`${server.url}${lineagePath("dataset", "web", "report")}?at=-24h`);
    await cards(page).filter({ hasText: "orders" }).waitFor();
    expect(await cards(page).filter({ hasText: "returns" }).count()).toBe(0);
    // by keys: the last change is shown, and the earlier time stays the earlier one
    await page.goto(server.url + lineagePath("dataset", "web", "report"));
    await page.getByText("2 changes", { exact: true }).waitFor();
    await page.locator(".stage").focus();
    await page.keyboard.press("d");
    await page.getByText("new edge: returns → daily").waitFor();
    const slider = page.getByRole("slider", { name: "As of" });
    for (const position of ["1", "0"]) {
      await page.keyboard.press("[");
      await expect.poll(() => slider.inputValue()).toBe(position);
      const [at, versus] = ["at", "vs"].map((each) => new URL(page.url()).searchParams.get(each)!);
      expect(Date.parse(versus!)).toBeLessThanOrEqual(Date.parse(at!));
    }
    await page.getByText("Nothing differs between these times").waitFor();
    expect(await page.locator(".fault").count()).toBe(0);
    await page.context().close();
  });

  test("expand from one node to 300, and nothing that stands moves", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url + lineagePath("dataset", "web", "hub"));
    await page.getByRole("heading", { name: /hub/, level: 1 }).waitFor();
    await expect.poll(() => count(page)).toBeGreaterThan(50);
    expect(await count(page)).toBeLessThanOrEqual(200);
    const hub = page.locator(".card.start");
    let before = await places(page);
    for (let turn = 0; turn < 4 && (await count(page)) < 300; turn++) {
      const had = await count(page);
      const chip = hub.locator(".chips.down button", { hasText: "+" });
      expect(await chip.textContent()).toMatch(/\+\d+/);
      await chip.click();
      await expect.poll(() => count(page)).toBeGreaterThan(had);
      const after = await places(page);
      for (const [id, place] of Object.entries(before)) if (after[id]) expect(after[id]).toBe(place);
      before = after;
    }
    expect(await count(page)).toBeGreaterThanOrEqual(300);
    await page.keyboard.press("f");
    await page.screenshot({ path: join(SHOTS, "flow-300.png") });
    // and back: contracting restores the picture
    await page.goBack();
    await page.context().close();
  });

  test("a chain grows by its chips, keys walk it, a deep link brings all of it back", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url + lineagePath("dataset", "web", "table_20"));
    await cards(page).filter({ hasText: "table_21" }).waitFor();
    const before = await places(page);
    await page.locator(".card", { hasText: "table_21" }).locator(".chips.down button").last().click();
    await cards(page).filter({ hasText: "table_22" }).waitFor();
    const after = await places(page);
    for (const [id, place] of Object.entries(before)) expect(after[id]).toBe(place);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("button", { name: "Run states" }).click();
    await page.locator(".card .column").first().waitFor();
    await page.locator('.card[aria-label="step_20, job, complete"]').waitFor(); // asked for after the columns
    await page.locator(".stage").focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
    await expect.poll(() => new URL(page.url()).searchParams.get("sel")).toBe("job:web:step_20");
    const shown = await page
      .locator(".card")
      .evaluateAll((all) => all.map((card) => card.getAttribute("aria-label")).sort());
    const other = await openPage(browser, errors);
    await other.goto(page.url());
    await other.locator(".card .column").first().waitFor();
    await expect
      .poll(() =>
        other
          .locator(".card")
          .evaluateAll((all) => all.map((card) => card.getAttribute("aria-label")).sort()),
      )
      .toEqual(shown);
    expect(await other.getByRole("button", { name: "Columns" }).getAttribute("aria-pressed")).toBe("true");
    await other.locator(".stage").focus();
    await other.keyboard.press("Enter");
    await other.getByRole("heading", { name: /step_20/ }).waitFor();
    await page.context().close();
    await other.context().close();
  });

  test("keys work on the picture that is seen while another is asked for", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url + lineagePath("dataset", "web", "table_20"));
    await cards(page).filter({ hasText: "table_21" }).waitFor();
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = 0;
    await page.route(/\/hw\/v1\/graph\?.*columns=true/, async (route) => {
      asked += 1;
      await held;
      await route.continue();
    });
    await page.locator(".stage").focus();
    const title = await page.locator(".toolbar h1").textContent();
    await page.keyboard.press("c");
    await expect.poll(() => asked).toBe(1);
    // nothing is known of the picture with columns yet: cards, name and count stay as they are
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
    await page.locator(".card.focused", { hasText: "step_20" }).waitFor();
    expect(new URL(page.url()).searchParams.get("sel")).toBe("job:web:step_20");
    expect(await page.locator(".toolbar h1").textContent()).toBe(title);
    expect(await page.locator(".card .column").count()).toBe(0);
    answer();
    await page.locator(".card .column").first().waitFor();
    await page.locator(".card.focused", { hasText: "step_20" }).waitFor();
    // the list does not turn into a picture while it is asked for anew, either
    await page.getByRole("button", { name: "list", exact: true }).click();
    await page.locator("[data-node]").first().waitFor();
    await page.route(/\/hw\/v1\/graph\?.*direction=up/, (route) => setTimeout(() => route.continue(), 800));
    await page.getByRole("button", { name: "More hops up" }).click();
    await page.waitForTimeout(300);
    expect(await page.locator(".stage").count()).toBe(0);
    await page.locator("[data-node='dataset:web:table_18']").waitFor();
    await page.context().close();
  });

  test("runs and versions in the picture lead to what they are of", async () => {
    const page = await openPage(browser, errors);
    await page.goto(`${server.url}${TABLE}?grain=run`);
    await page.locator(".card.run").first().waitFor();
    expect(await page.locator(".chips").count()).toBe(0);
    await page.locator(".card.run").first().click();
    await page.getByRole("heading", { name: /^Run / }).waitFor();
    await page.locator(".card.dataset").first().click();
    await page.locator(".stage").focus();
    await page.keyboard.press("Enter");
    await page.getByText("first seen").waitFor();
    expect(page.url()).not.toContain("%23");
    await page.context().close();
  });

  test("filters bridge what they hide, and never empty the picture", async () => {
    const page = await openPage(browser, errors);
    await page.goto(`${server.url}${TABLE}?up=3`);
    await cards(page).filter({ hasText: "raw/payments" }).waitFor();
    await page.goto(`${server.url}${TABLE}?up=3&hide=type:job&hide=ns:spark`);
    await expect.poll(() => page.locator(".card.job").count()).toBe(0);
    await cards(page).filter({ hasText: "raw/payments" }).waitFor();
    const { edges } = JSON.parse((await download(page, "json")).toString()) as {
      edges: { from: string; to: string; hidden?: number }[];
    };
    expect(edges).toContainEqual({
      from: "dataset:s3://lake:silver/orders_paid",
      to: "dataset:s3://lake:gold/revenue_by_day",
      hidden: 1,
    });
    await page.goto(`${server.url}${TABLE}?up=3&hide=type:job&hide=type:dataset`);
    await expect.poll(() => cards(page).count()).toBe(1);
    expect(await page.getByText("Nothing is known to read or write it").count()).toBe(0);
    await page.goto(`${server.url}${TABLE}?up=3&fold=s3:%2F%2Flake`);
    await page.locator(".card.group", { hasText: "node" }).waitFor();
    await page.context().close();
  });

  test("picture, list, tree, text, JSON, Mermaid and the command line tell the same nodes", async () => {
    const page = await openPage(browser, errors, { viewport: { width: 1900, height: 1000 } });
    const answer = JSON.parse(
      await server.headwater("graph", "gold/revenue_by_day", "--depth", "3", "--json"),
    ) as { nodes: { id: string; name: string }[] };
    const wanted = answer.nodes.map((each) => each.id).sort();
    const query = "?grain=all&up=3&down=3";
    await page.goto(`${server.url}${TABLE}${query}`);
    await expect.poll(() => count(page)).toBe(wanted.length);
    await page.locator(".stage").focus();
    await page.keyboard.press("f");
    const json = JSON.parse((await download(page, "json")).toString()) as { nodes: { id: string }[] };
    expect(json.nodes.map((each) => each.id).sort()).toEqual(wanted);
    const text = (await download(page, "txt")).toString();
    const mermaid = (await download(page, "mmd")).toString();
    for (const each of answer.nodes) {
      expect(text).toContain(each.id);
      expect(mermaid).toContain(each.name);
    }
    const svg = (await download(page, "svg")).toString();
    expect(svg.match(/<g transform/g)!.length).toBe(wanted.length);
    expect((await download(page, "png")).subarray(1, 4).toString()).toBe("PNG");
    const told = () =>
      page
        .locator("[data-node]")
        .evaluateAll((all) => [...new Set(all.map((each) => each.getAttribute("data-node")!))].sort());
    for (const form of ["list", "tree"]) {
      await page.getByRole("button", { name: form, exact: true }).click();
      await expect.poll(told).toEqual(wanted);
    }
    await page.context().close();
  });

  test("hostile names are shown, and do nothing", async () => {
    const page = await openPage(browser, errors);
    for (const path of [
      lineagePath("dataset", "web", "<script>globalThis.hurt=1</script>"),
      lineagePath("job", "web", '<img src=x onerror="globalThis.hurt=1">'),
      `/datasets/web/${encodeURIComponent("\u202eevil\u202c عربي")}`,
      `/datasets/web/${"x".repeat(4_000)}`,
      "/events",
      "/datasets?q=x",
    ]) {
      await page.goto(server.url + path);
      await page.locator("h1").first().waitFor();
      await page.waitForTimeout(400);
      expect(await page.evaluate(() => (globalThis as { hurt?: number }).hurt)).toBeUndefined();
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    }
    // the longest name that is taken: wrapped where it is the title, clipped in the middle elsewhere
    await page.goto(`${server.url}/datasets/web/${"x".repeat(4_000)}`);
    await page.getByText("first seen").waitFor();
    await page.screenshot({ path: join(SHOTS, "flow-long.png") });
    await page.goto(`${server.url}${lineagePath("dataset", "web", "x".repeat(4_000))}`);
    await page.locator(".card.start").waitFor();
    const card = await page.locator(".card.start").boundingBox();
    expect(card!.width).toBeLessThan(400);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.goto(`${server.url}${lineagePath("dataset", "web", "wide")}?columns=1`);
    await page.getByText("490 more columns").first().waitFor();
    await page.getByText("490 more columns").first().click();
    await page.locator(".card .column").nth(499).waitFor();
    await page.reload(); // the address says which cards are open
    await page.locator(".card .column").nth(499).waitFor();
    await page.screenshot({ path: join(SHOTS, "flow-wide.png") });
    await page.context().close();
  });

  test("what comes in is seen at once, and a server that goes is waited for", async () => {
    const page = await openPage(browser, errors);
    await page.goto(`${server.url}/start?engine=any`);
    await page.getByText("waiting for the first event").waitFor();
    await page.locator(".live.on").waitFor();
    await send(server.url, [ran("mine", ["in"], ["out"], new Date())]);
    await page.getByText("got COMPLETE from").waitFor();
    await page.goto(server.url + lineagePath("dataset", "web", "out"));
    await cards(page).filter({ hasText: "mine" }).waitFor();
    const restart = server.restart(1500);
    await page.getByText("The server does not answer").waitFor();
    expect(await cards(page).count()).toBeGreaterThan(1);
    await restart;
    await page.locator(".live.on").waitFor({ timeout: 30_000 });
    await send(server.url, [ran("later", ["out"], ["last"], new Date())]);
    await cards(page).filter({ hasText: "later" }).waitFor({ timeout: 20_000 });
    await page.context().close();
  });

  test("a refused event is corrected and taken", async () => {
    const page = await openPage(browser, errors);
    await fetch(`${server.url}/api/v1/lineage`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"eventTime": "someday", "job": {"namespace": "web", "name": "repaired"}}',
    });
    await page.goto(`${server.url}/rejected`);
    await page.getByRole("button", { name: "Look" }).first().click();
    await page
      .getByLabel("What came")
      .fill('{"eventTime": "2026-01-31T12:00:00Z", "job": {"namespace": "web", "name": "repaired"}}');
    await page.getByRole("button", { name: "Send it again" }).click();
    await page.getByText("It was taken.").waitFor();
    await page.goto(`${server.url}/jobs/web/repaired`);
    await page.getByRole("heading", { name: /repaired/ }).waitFor();
    await page.context().close();
  });

  test("a name that is too long, and tries to be something else, is refused and shown safely", async () => {
    const page = await openPage(browser, errors);
    const name = `<img src=x onerror="globalThis.hurt=1">${"\u202e"}${"y".repeat(10_000)}`;
    const answer = await fetch(`${server.url}/api/v1/lineage`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(ran(name, [], ["fine"], new Date())),
    });
    expect(answer.status).toBe(422);
    await page.goto(`${server.url}/rejected`);
    await page.getByRole("button", { name: "Look" }).first().click();
    await page.getByLabel("What came").waitFor();
    const safe = async () => {
      expect(await page.getByLabel("What came").inputValue()).toContain("y".repeat(10_000));
      expect(await page.locator(".one h2").textContent()).toMatch(/job\.name/);
      expect(await page.evaluate(() => (globalThis as { hurt?: number }).hurt)).toBeUndefined();
      expect(await page.locator("main img").count()).toBe(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      expect((await page.locator(".one h2").boundingBox())!.height).toBeLessThan(200);
    };
    await safe();
    await page.screenshot({ path: join(SHOTS, "flow-refused-long.png") });
    // the address names the one that is open
    await page.reload();
    await page.getByLabel("What came").waitFor();
    await safe();
    await page.context().close();
  });

  test("Enter goes to what was typed, though its answer is not there yet", async () => {
    const page = await openPage(browser, errors);
    await page.goto(server.url);
    await page.keyboard.type("rep");
    await page.getByRole("option", { name: /report/ }).waitFor();
    await page.locator("#home-search").fill("orders_paid");
    await page.keyboard.press("Enter");
    await page.waitForURL(/orders_paid$/);
    await page.context().close();
  });

  test("what was wrong with one address is not told of the next", async () => {
    const page = await openPage(browser, errors);
    const daily = lineagePath("job", "web", "daily");
    await page.goto(server.url + daily);
    await cards(page).filter({ hasText: "report" }).waitFor();
    await page.evaluate((path) => {
      const link = document.createElement("a");
      link.href = path;
      document.querySelector("main")!.append(link);
      link.click();
    }, `${daily}?at=someday`);
    await page.locator(".pane .fault", { hasText: "is no time" }).waitFor();
    await page.goBack();
    await page.locator(".fault").first().waitFor({ state: "detached" });
    expect(await page.locator(".fault").count()).toBe(0);
    await page.context().close();
  });

  test("events are found behind any number of others", async () => {
    const page = await openPage(browser, errors);
    // an answer looks at so many entries: here the first two at none that fits
    const next = new Map([
      ["", "0.0"],
      ["0.0", "0.1"],
    ]);
    await page.route(/\/hw\/v1\/events\?/, (route) => {
      const beyond = next.get(new URL(route.request().url()).searchParams.get("cursor") ?? "");
      return beyond ? route.fulfill({ json: { events: [], next: beyond } }) : route.continue();
    });
    await page.goto(`${server.url}/jobs/web/daily?tab=events`);
    await page.getByRole("button", { name: "Save these 2" }).waitFor();
    expect(await page.locator(".log .row").count()).toBe(2);
    await page.context().close();
  });

  test("an address says what is searched for, and which event is open", async () => {
    const page = await openPage(browser, errors);
    await page.goto(`${server.url}/search?q=orders_paid`);
    await page
      .getByRole("option", { name: /orders_paid/ })
      .first()
      .waitFor();
    expect(new URL(page.url()).pathname).toBe("/");
    await page.locator("#home-search").fill("revenue");
    await expect.poll(() => new URL(page.url()).searchParams.get("q")).toBe("revenue");
    const [run] = (await (await fetch(`${server.url}/hw/v1/runs?state=FAIL`)).json()) as { id: string }[];
    await page.locator("#home-search").fill(run!.id);
    await page.getByRole("option", { name: /the run with this id/ }).click();
    await page.getByRole("heading", { name: /failed/ }).waitFor();
    await page.goto(`${server.url}/events`);
    await page.getByRole("listitem").nth(2).getByRole("button").click();
    const open = page.locator(".one");
    await open.waitFor();
    const number = new URL(page.url()).searchParams.get("event")!;
    const text = await open.textContent();
    const other = await openPage(browser, errors);
    await other.goto(page.url());
    await expect.poll(() => other.locator(".one").textContent()).toBe(text);
    // one that is not on the page that is shown first
    await other.goto(`${server.url}/events?kind=dataset&event=${number}`);
    await other.goto(`${server.url}/events?job=job:web:daily&event=${number}`);
    await expect.poll(() => other.locator(".one").textContent()).toBe(text);
    await page.context().close();
    await other.context().close();
  });

  test("links of Marquez's UI show here what they showed there", async () => {
    const page = await openPage(browser, errors);
    const id = "dataset:s3://lake:gold/revenue_by_day";
    await page.goto(
      `${server.url}${TABLE.replace("/dataset/", "/DATASET/")}?depth=2&tableLevelNode=${encodeURIComponent(id)}`,
    );
    await page.locator(".card.start.focused").waitFor();
    await page.getByText("2 up").waitFor();
    const column = encodeURIComponent("datasetField:s3://lake:gold/revenue_by_day:revenue");
    await page.goto(
      `${server.url}${TABLE.replace("/lineage/dataset/", "/datasets/column-level/")}?column=${column}&columnName=revenue`,
    );
    await page.locator(".card.start .column.lit", { hasText: "revenue" }).waitFor();
    await page.getByRole("heading", { name: /Column revenue/ }).waitFor();
    await page.goto(`${server.url}/jobs/revenue`);
    await page
      .getByRole("link", { name: /revenue/ })
      .first()
      .waitFor();
    await page.goto(`${server.url}/health`);
    await page.getByRole("heading", { name: /written by nobody known/ }).waitFor();
    await page.context().close();
  });

  test("an alias rule is previewed, then saved", async () => {
    const page = await openPage(browser, errors);
    await page.goto(`${server.url}/admin?tab=names`);
    await page.getByLabel("to namespace").fill("joined");
    await page.getByLabel("namespace", { exact: true }).fill("web");
    await page.getByLabel("name", { exact: true }).fill("copy_{n}");
    await page.getByLabel("to name", { exact: true }).fill("copies");
    await page.getByRole("button", { name: "See what it would do" }).click();
    await page.getByText("It would make 1 merge").waitFor();
    // what is saved is what was looked at
    const save = page.getByRole("button", { name: "Save" });
    expect(await save.isEnabled()).toBe(true);
    await page.getByLabel("name", { exact: true }).fill("copy_1");
    expect(await save.isEnabled()).toBe(false);
    await page.context().close();
  });
});
