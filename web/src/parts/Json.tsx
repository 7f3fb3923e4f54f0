// parts/Json: any value -> a tree that folds; long texts and lists show their beginning first.
import { useState } from "preact/hooks";

const MOST = 100;

export function Json({ value, open = 2 }: { value: unknown; open?: number }) {
  return (
    <div class="json">
      <Value value={value} open={open} />
    </div>
  );
}

function Value({ value, open }: { value: unknown; open: number }) {
  const [most, setMost] = useState(MOST);
  if (typeof value === "string") return <Text text={value} />;
  if (value === null || typeof value !== "object") return <span class="atom">{String(value)}</span>;
  const entries = Object.entries(value);
  if (!entries.length) return <span class="muted">{Array.isArray(value) ? "[ ]" : "{ }"}</span>;
  return (
    <ul>
      {entries.slice(0, most).map(([name, inner]) => (
        <li key={name}>
          {inner !== null && typeof inner === "object" && Object.keys(inner).length > 0 ? (
            <details open={open > 0}>
              <summary>
                <bdi>{name}</bdi> <span class="muted">{Object.keys(inner).length}</span>
              </summary>
              <Value value={inner} open={open - 1} />
            </details>
          ) : (
            <>
              <span class="name">
                <bdi>{name}</bdi>
              </span>{" "}
              <Value value={inner} open={0} />
            </>
          )}
        </li>
      ))}
      {entries.length > most && (
        <li>
          <button type="button" onClick={() => setMost(most * 10)}>
            {entries.length - most} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Text({ text }: { text: string }) {
  const [whole, setWhole] = useState(text.length <= 600);
  if (/^https?:\/\/\S+$/.test(text))
    return (
      <a href={text} target="_blank" rel="noreferrer noopener">
        {text}
      </a>
    );
  return (
    <span class="text">
      <bdi>{whole ? text : text.slice(0, 600)}</bdi>
      {!whole && (
        <button type="button" onClick={() => setWhole(true)}>
          … {text.length - 600} more letters
        </button>
      )}
    </span>
  );
}
