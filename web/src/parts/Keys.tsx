// parts/Keys: `?` -> which keys do what.
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["/  or  Ctrl-K", "search"],
  ["?", "this list"],
  ["← →", "in the picture: along an edge"],
  ["↑ ↓", "to the next card of the column"],
  ["Enter", "open the card's page"],
  ["Space, Shift-Space", "show what is downstream, upstream"],
  ["c  i  d", "columns, impact, comparison"],
  ["[  ]", "the change before, the change after"],
  ["f  +  -", "all of it, nearer, farther"],
  ["Esc", "back to the start"],
];

export function Keys() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "?" && !typing) box.current?.showModal();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  return (
    <>
      <button type="button" aria-label="Keys" title="Keys (?)" onClick={() => box.current?.showModal()}>
        ?
      </button>
      <dialog ref={box} aria-label="Keys">
        <dl class="facts">
          {KEYS.map(([key, what]) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </>
          ))}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </>
  );
}
