// The house: each module's first line tells its flow, none is long, names say something, and imports lead one way.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SOURCES = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
/** A room imports from those before it and from its own. */
const ROOMS = ["", "api", "layout", "lineage", "draw", "parts", "explorer", "pages"];
const FRONT = "main.tsx";

const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => /\.tsx?$/.test(file));

const room = (file: string): number => ROOMS.indexOf(dirname(file) === "." ? "" : dirname(file));

test.each(files)("%s", (file) => {
  const text = readFileSync(join(SOURCES, file), "utf8");
  const name = file.replace(/\.tsx?$/, "");
  expect(text.split("\n")[0]).toMatch(new RegExp(`^// ${name}: \\S`));
  expect(text.split("\n").length).toBeLessThanOrEqual(400);
  expect(name).not.toMatch(/(^|\/)(utils?|common|helpers?|manager|base|misc)$/i);
  expect(room(file)).toBeGreaterThanOrEqual(0);
  if (file === FRONT) return;
  for (const [, target] of text.matchAll(/from "(\.[^"]+)"/g)) {
    const found = relative(SOURCES, join(SOURCES, posix.dirname(file), target!)).replaceAll("\\", "/");
    expect(room(found), `${file} imports ${found}`).toBeLessThanOrEqual(room(file));
  }
});
