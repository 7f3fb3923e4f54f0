// Who may come in: a server that asks for keys, one that takes no writes, one below a path of its own.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { demo, lineagePath, MISSING, openBrowser, openPage, SHOTS, send, serve } from "./harness.ts";

let browser: Browser;
const errors: string[] = [];

describe.skipIf(MISSING)("doors", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });
  afterEach(() => {
    expect(errors.splice(0)).toEqual([]);
  });

  test("a wrong key is told, a right one lets in, and what it may not do is not offered", async () => {
    const server = await serve();
    try {
      await send(server.url, demo());
      const made = async (name: string, scope: string) =>
        /hw_[\w-]+/.exec(await server.headwater("keys", "create", name, "--scope", scope))![0];
      const [reader, admin] = [await made("reader", "read"), await made("boss", "admin")];
      const guarded = await serve("--store", `sqlite:///${server.folder}/web.db`, "--host", "0.0.0.0");
      try {
        const url = guarded.url.replace("0.0.0.0", "127.0.0.1");
        const page = await openPage(browser, errors);
        await page.goto(url);
        await page.getByText("This server wants to know who you are").waitFor();
        await page.getByLabel("Key", { exact: true }).fill("hw_000000000000_wrong");
        await page.getByRole("button", { name: "Go on" }).click();
        await page.getByText("no such key").waitFor();
        await page.screenshot({ path: join(SHOTS, "door-wrong-key.png") });
        await page.getByLabel("Key", { exact: true }).fill(reader);
        await page.getByRole("button", { name: "Go on" }).click();
        await page.getByText("not_null(day)").first().waitFor();
        await page.locator(".live.on").waitFor();
        expect(await page.content()).not.toContain(reader);
        await page
          .getByRole("link", { name: /not_null/ })
          .first()
          .click();
        await page.getByRole("heading", { name: "Blamed" }).waitFor();
        expect(await page.getByRole("button", { name: "Resolve" }).count()).toBe(0);
        await page.goto(`${url}/admin`);
        await page.getByText("this needs a key with the scope 'admin'").first().waitFor();
        await page.getByRole("button", { name: "Forget key" }).click();
        await page.getByLabel("Key", { exact: true }).fill(admin);
        await page.getByRole("button", { name: "Go on" }).click();
        await page.locator("strong", { hasText: "boss" }).waitFor();
        expect(await page.content()).not.toContain(admin);
        await page.context().close();
      } finally {
        await guarded.stop();
      }
    } finally {
      await server.stop();
    }
  });

  test("a server that takes no writes offers none", async () => {
    const server = await serve();
    try {
      await send(server.url, demo());
      const still = await serve("--store", `sqlite:///${server.folder}/web.db`, "--read-only");
      try {
        const page = await openPage(browser, errors);
        await page.goto(`${still.url}/incidents`);
        await page
          .getByRole("link", { name: /not_null/ })
          .first()
          .click();
        await page.getByRole("heading", { name: "Blamed" }).waitFor();
        expect(await page.getByRole("button", { name: /Resolve|Mute|Acknowledge/ }).count()).toBe(0);
        await page.goto(`${still.url}/admin`);
        await page.getByText("read only").waitFor();
        expect(await page.getByRole("button", { name: "See what it would do" }).count()).toBe(0);
        await page.context().close();
      } finally {
        await still.stop();
      }
    } finally {
      await server.stop();
    }
  });

  test("below a base path every link and file is found, and Marquez's address of columns leads here", async () => {
    const server = await serve("--base-path", "/data/lineage");
    try {
      await send(server.url, demo());
      const page = await openPage(browser, errors);
      await page.goto(`${server.url}/`);
      await page.getByRole("link", { name: "Datasets" }).first().click();
      await page
        .getByRole("link", { name: /revenue_by_day/ })
        .first()
        .click();
      await page.getByRole("heading", { name: /revenue_by_day/ }).waitFor();
      expect(new URL(page.url()).pathname).toMatch(/^\/data\/lineage\/datasets\//);
      await page.reload();
      await page.getByRole("heading", { name: /revenue_by_day/ }).waitFor();
      await page.goto(
        `${server.url}/datasets/column-level/${encodeURIComponent("s3://lake")}/${encodeURIComponent("gold/revenue_by_day")}`,
      );
      await page.locator(".card .column", { hasText: "revenue" }).first().waitFor();
      await page.goto(server.url + lineagePath("job", "spark", "revenue"));
      await page.locator(".card", { hasText: "silver/orders_paid" }).waitFor();
      await page.context().close();
    } finally {
      await server.stop();
    }
  });
});
