// Who may come in: a server that asks for keys, one that takes no writes, one below a path of its own.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  axe,
  catalogue,
  demo,
  lineagePath,
  MISSING,
  openBrowser,
  openPage,
  SHOTS,
  send,
  serve,
  serveWith,
} from "./harness.ts";

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
      const [reader, admin, sender] = [
        await made("reader", "read"),
        await made("boss", "admin"),
        await made("sender", "ingest"),
      ];
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
        // one that may not ask is told so, and not that the server is away
        await page.getByLabel("Key", { exact: true }).fill(sender);
        await page.getByRole("button", { name: "Go on" }).click();
        await page.getByText("this needs a key with the scope 'read'").first().waitFor();
        await page.locator(".live.refused").waitFor();
        expect(await page.locator(".away").count()).toBe(0);
        await page.getByRole("button", { name: "Forget key" }).click();
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
        await page.goto(`${url}/start?engine=any`);
        await page.getByText('curl -H "Authorization: Bearer $OPENLINEAGE_API_KEY"').waitFor();
        await page.goto(`${url}/admin`);
        await page.getByText("this needs a key with the scope 'admin'").first().waitFor();
        await page.getByRole("button", { name: "Forget key" }).click();
        await page.getByLabel("Key", { exact: true }).fill(admin);
        await page.getByRole("button", { name: "Go on" }).click();
        await page.getByText("asked for; you are boss").waitFor();
        expect(await page.content()).not.toContain(admin);
        // a key is made, shown once, works, and is ended
        await page.getByRole("button", { name: "keys", exact: true }).click();
        await page.getByRole("rowheader", { name: "boss" }).waitFor();
        await page.getByLabel("for whom").fill("two words");
        await page.getByRole("button", { name: "Make a key" }).click();
        await page.getByText("is no name for a key").waitFor();
        await page.getByLabel("for whom").fill("nightly");
        await page.getByRole("button", { name: "Make a key" }).click();
        const fresh = (await page.locator(".once code").textContent())!;
        expect(fresh).toMatch(/^hw_/);
        await page.getByRole("rowheader", { name: "nightly" }).waitFor();
        expect(await axe(page)).toEqual([]);
        await page.screenshot({ path: join(SHOTS, "door-new-key.png") });
        const status = async () =>
          (await fetch(`${url}/hw/v1/status`, { headers: { "X-API-Key": fresh } })).status;
        expect(await status()).toBe(200);
        await page.getByRole("button", { name: "I have it" }).click();
        expect(await page.content()).not.toContain(fresh);
        await page.reload();
        const row = page.getByRole("row", { name: /nightly/ });
        await row.waitFor();
        expect(await page.content()).not.toContain(fresh);
        page.once("dialog", (dialog) => dialog.accept());
        await row.getByRole("button", { name: "End it" }).click();
        await row.getByText("revoked").waitFor();
        await expect.poll(status, { timeout: 10_000 }).toBe(401);
        await page.getByRole("button", { name: "audit", exact: true }).click();
        await page.getByRole("row", { name: /key create.*nightly/ }).waitFor();
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
        for (const tab of ["keys", "names", "deliveries"]) {
          await page.goto(`${still.url}/admin?tab=${tab}`);
          await page.locator("section .empty, section table, section li").first().waitFor();
          const offered = page.getByRole("button", {
            name: /would do|Make|End it|Forget|Try|Save|Take back/,
          });
          expect(await offered.count()).toBe(0);
        }
        await page.context().close();
      } finally {
        await still.stop();
      }
    } finally {
      await server.stop();
    }
  });

  test("what DataHub refuses is seen with its reason, tried again and forgotten", async () => {
    const datahub = await catalogue("dataJobInputOutput", "dataFlowInfo");
    const server = await serveWith(`[deliver.datahub]\nto = "${datahub.url}"\nevery = 0.3\n`);
    try {
      const page = await openPage(browser, errors);
      await page.goto(`${server.url}/admin?tab=deliveries`);
      await page.getByText("0 proposals").waitFor();
      await send(server.url, demo());
      await page.getByText("✕ refused").first().waitFor({ timeout: 30_000 });
      await page.getByText("not at all").waitFor({ timeout: 30_000 });
      await page.getByText("<b>dataFlowInfo</b> is not allowed here").first().waitFor();
      const refused = page.locator(".letters > li");
      await expect.poll(() => refused.count()).toBeGreaterThan(2);
      await refused.first().getByRole("button", { name: "Look" }).click();
      await page.locator(".letters .json", { hasText: "entityUrn" }).waitFor();
      expect(await axe(page)).toEqual([]);
      await page.screenshot({ path: join(SHOTS, "door-deliveries.png") });
      await page.reload(); // the address says which one is open
      await page.locator(".letters .json", { hasText: "entityUrn" }).waitFor();
      const had = await refused.count();
      await refused.first().getByRole("button", { name: "Forget" }).click();
      await expect.poll(() => refused.count()).toBe(had - 1);
      const before = datahub.taken.length;
      datahub.refuses.clear();
      await page.getByRole("button", { name: "Try all again" }).click();
      await expect.poll(() => datahub.taken.length, { timeout: 30_000 }).toBe(before + had - 1);
      await expect.poll(() => refused.count(), { timeout: 30_000 }).toBe(0);
      await page.getByText(`${datahub.taken.length} proposals`).waitFor({ timeout: 30_000 });
      await page.goto(server.url);
      await page.getByText("✓ up to date").waitFor();
      await page.goto(`${server.url}/admin?tab=audit`);
      await page.getByRole("row", { name: /delivery retry/ }).waitFor();
      await page.getByRole("row", { name: /delivery forget/ }).waitFor();
      await datahub.stop();
      await send(server.url, [{ ...demo()[0]!, eventTime: new Date().toISOString(), eventType: "COMPLETE" }]);
      await page.goto(`${server.url}/admin?tab=deliveries`);
      await page.getByText("held up since").waitFor({ timeout: 60_000 });
      await page.context().close();
    } finally {
      await server.stop();
      await datahub.stop().catch(() => {});
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
