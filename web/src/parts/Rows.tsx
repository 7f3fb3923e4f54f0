// parts/Rows: many rows of one height -> those that are seen. 50,000 cost what 30 do.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props<T> {
  items: T[];
  height: number;
  label: string;
  row: (item: T, at: number) => ComponentChildren;
  /** Called when the end comes into sight. */
  more?: () => void;
}

const BEYOND = 8;

export function Rows<T>({ items, height, label, row, more }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, high: 600 });
  useEffect(() => {
    const element = box.current!;
    const look = () => setView({ top: element.scrollTop, high: element.clientHeight });
    look();
    element.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      watch.disconnect();
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / height) - BEYOND);
  const last = Math.min(items.length, Math.ceil((view.top + view.high) / height) + BEYOND);
  const atEnd = last >= items.length;
  // asks when the end is reached, and again when it moved on
  useEffect(() => {
    if (atEnd) more?.();
  }, [atEnd, items.length]);
  return (
    <div
      class="rows"
      ref={box}
      role="list"
      aria-label={label}
      tabIndex={0}
      style={{ "--all": `${items.length * height + 2}px` }}
    >
      <div style={{ height: `${items.length * height}px`, position: "relative" }} role="presentation">
        {items.slice(first, last).map((item, at) => (
          <div
            key={first + at}
            role="listitem"
            aria-setsize={items.length}
            aria-posinset={first + at + 1}
            class="row"
            style={{ top: `${(first + at) * height}px`, height: `${height}px` }}
          >
            {row(item, first + at)}
          </div>
        ))}
      </div>
    </div>
  );
}
