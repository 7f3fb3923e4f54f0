// vite.config: the pages that are measured -> files; ours from the sources of the web UI, the peers from their packages.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export default {
  root: here,
  base: "./",
  define: { "process.env.NODE_ENV": '"production"' },
  build: {
    outDir: "built",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 5000,
    rollupOptions: { input: ["ours", "xyflow", "layouts", "empty"].map((name) => join(here, `${name}.html`)) },
  },
  worker: { format: "es" },
  resolve: {
    alias: {
      "@web": join(here, "..", "..", "web", "src"),
      preact: join(here, "..", "..", "web", "node_modules", "preact"),
      "@preact/signals": join(here, "..", "..", "web", "node_modules", "@preact", "signals"),
    },
  },
};
