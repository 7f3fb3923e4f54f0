// parts/Copy: a text -> a button that copies it and says so.
import { useState } from "preact/hooks";
import { copy } from "./files.ts";

export function Copy({ text, label }: { text: () => string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      onClick={async () => {
        setDone(await copy(text()));
        setTimeout(() => setDone(false), 2000);
      }}
    >
      {done ? "Copied" : label}
    </button>
  );
}
