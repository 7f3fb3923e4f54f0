// a page of the site, opened from the file system -> what its search finds, whom it asks, how it looks in the dark, as JSON
import { createRequire } from "node:module";

const [web, page, browser, word] = process.argv.slice(2);
const { chromium } = createRequire(`${web}/package.json`)("playwright-core");
const running = await chromium.launch({ executablePath: browser, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
try {
  const context = await running.newContext({ colorScheme: "dark" });
  const tab = await context.newPage();
  const asked = [];
  tab.on("request", (each) => asked.push(each.url()));
  await tab.goto(`file://${page}`);
  const scheme = await tab.evaluate(() => document.body.getAttribute("data-md-color-scheme"));
  await tab.keyboard.press("/");
  await tab.waitForTimeout(500);
  await tab.keyboard.type(word);
  const hit = tab.locator(`a:has-text("${word}")`).filter({ visible: true });
  await hit.first().waitFor({ timeout: 30000 });
  const found = await tab.evaluate(() => document.body.innerText + [...document.querySelectorAll("*")].map((each) => each.shadowRoot?.textContent ?? "").join(" "));
  console.log(JSON.stringify({ asked: asked.filter((each) => !/^(file|blob|data):/.test(each)), scheme, results: Number(/(\d+) results?/.exec(found)?.[1] ?? 0) }));
} finally {
  await running.close();
}
