// vite.config: the sources -> one page and its files, inside the Python package.
import { defineConfig } from "vitest/config";

const server = process.env.HEADWATER_URL ?? "http://127.0.0.1:5000";

export default defineConfig({
  base: "./", // relative to <base>, which the server writes: the same files work below any path
  build: {
    outDir: "../src/headwater/serve/built",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content policy allows no inlined files
  },
  worker: { format: "es" },
  server: { proxy: { "/hw": server, "/api": server } },
  test: {
    projects: [
      { test: { name: "units", include: ["test/**/*.test.ts"], environment: "node" } },
      {
        test: {
          name: "browser",
          include: ["browser/**/*.test.ts"],
          environment: "node",
          testTimeout: 240_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
