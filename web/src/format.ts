// format: values of the server -> words that people read. Pure: whoever asks says what time it is.

const UNITS: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** What the server calls now may lie so much after what the page does. */
const CLOCKS_DIFFER = 60_000;

/** How long ago, in the largest unit that says something. */
export function ago(time: string | null | undefined, now: number): string {
  if (!time) return "never";
  const passed = now - Date.parse(time);
  if (Number.isNaN(passed)) return time;
  if (passed > -CLOCKS_DIFFER && passed < 1000) return "now";
  const told = duration(Math.abs(passed));
  return passed < 0 ? `in ${told}` : `${told} ago`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  for (const [at, [unit, size]] of UNITS.entries()) {
    if (ms < size) continue;
    const whole = Math.floor(ms / size);
    const smaller = UNITS[at + 1];
    const rest = smaller && whole < 10 ? Math.floor((ms % size) / smaller[1]) : 0;
    return rest && smaller ? `${whole} ${unit} ${rest} ${smaller[0]}` : `${whole} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
}

/** A time as the reader's clock shows it. */
export function clock(time: string | null | undefined): string {
  if (!time) return "–";
  const moment = new Date(time);
  if (Number.isNaN(moment.getTime())) return time;
  const pad = (part: number) => String(part).padStart(2, "0");
  const day = `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
  return `${day} ${pad(moment.getHours())}:${pad(moment.getMinutes())}:${pad(moment.getSeconds())}`;
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  let left = count;
  for (const unit of ["B", "KB", "MB", "GB", "TB"]) {
    if (left < 1000 || unit === "TB")
      return `${left < 10 && unit !== "B" ? left.toFixed(1) : Math.round(left)} ${unit}`;
    left /= 1000;
  }
  return "–";
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A long name with its middle left out: ends tell most. */
export function clip(name: string, most: number): string {
  const letters = [...name];
  if (letters.length <= most) return name;
  const head = Math.ceil((most - 1) * 0.45);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

/** The last part of a name, which people know it by. */
export function short(name: string): string {
  const parts = name.split("/").filter(Boolean);
  return parts.length > 2 ? parts.slice(-2).join("/") : name;
}
