// run: sizes -> every page measured in Chromium, one at a time, as lines of JSON.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const { chromium } = createRequire(join(here, "..", "..", "web", "package.json"))("playwright-core");
const [sizes, limit, repeats] = [process.argv[2].split(",").map(Number), Number(process.argv[3]) * 1000, Number(process.argv[4])];
const kinds = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

const files = createServer((request, answer) => {
  try {
    const path = new URL(request.url, "http://localhost").pathname;
    answer.setHeader("Content-Type", kinds[extname(path)] ?? "application/octet-stream");
    answer.end(readFileSync(join(here, "built", path)));
  } catch {
    answer.statusCode = 404;
    answer.end();
  }
});
await new Promise((done) => files.listen(0, "127.0.0.1", done));
const base = `http://127.0.0.1:${files.address().port}`;
const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

async function measure(path) {
  const browser = await launch();
  try {
    const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
    await page.goto(`${base}${path}`, { timeout: limit });
    await page.waitForFunction(() => globalThis.result !== undefined, null, { timeout: limit, polling: 200 });
    return await page.evaluate(() => globalThis.result);
  } catch (fault) {
    return { over: /Timeout/.test(String(fault)) ? limit / 1000 : undefined, fault: String(fault).slice(0, 200) };
  } finally {
    await browser.close().catch(() => {});
  }
}

const PAGES = [
  ["layout", "ours", "/layouts.html?which=ours"],
  ["layout", "dagre", "/layouts.html?which=dagre"],
  ["layout", "elkjs", "/layouts.html?which=elk"],
  ["page", "an empty page", "/empty.html?x=1"],
  ["page", "ours", "/ours.html?x=1"],
  ["page", "xyflow", "/xyflow.html?x=1"],
  ["page", "xyflow, visible only", "/xyflow.html?visible=1"],
  ["page", "xyflow with dagre", "/xyflow.html?layout=dagre"],
  ["page", "xyflow with elkjs", "/xyflow.html?layout=elk"],
];
for (const n of sizes)
  for (let turn = 0; turn < repeats; turn++)
    for (const [what, who, path] of PAGES) console.log(JSON.stringify({ n, what, who, turn, ...(await measure(`${path}&n=${n}`)) }));
files.close();
