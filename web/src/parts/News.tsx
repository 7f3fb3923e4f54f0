// parts/News: entries as they come -> a count that makes a page ask anew, not more often than it can show.
import { useEffect, useState } from "preact/hooks";
import type { Told } from "../api/follow.ts";
import { onNews } from "../api/news.ts";
import type { Asked } from "./use.ts";

/** Counts up a while after entries came that a page is about. */
export function useNews(about: (entry: Told) => boolean = () => true, calm = 1000): number {
  const [count, setCount] = useState(0);
  // what a page is about is fixed while it stands
  useEffect(() => {
    let wait: ReturnType<typeof setTimeout> | undefined;
    const stop = onNews((entry) => {
      if (!about(entry)) return;
      clearTimeout(wait);
      wait = setTimeout(() => setCount((each) => each + 1), calm);
    });
    return () => {
      clearTimeout(wait);
      stop();
    };
  }, []);
  return count;
}

/** Asks anew when something came in that a page is about. */
export function useFresh(asked: Asked<unknown>, about: (entry: Told) => boolean): void {
  const news = useNews(about);
  useEffect(() => {
    if (news) asked.again();
  }, [news]);
}
