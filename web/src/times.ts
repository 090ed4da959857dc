/** Times in the viewer's zone and words; the server writes them in UTC. */
// Made when first used: to load a language's words takes longer than everything else that a page's script does at its start.
let absolute: Intl.DateTimeFormat | undefined;
let relative: Intl.RelativeTimeFormat | undefined;
const moment = (then: Date): string =>
  (absolute ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" })).format(then);
const distance = (count: number, unit: Intl.RelativeTimeFormatUnit): string =>
  (relative ??= new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" })).format(count, unit);
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function ago(then: Date, now: Date = new Date()): string {
  const seconds = (then.getTime() - now.getTime()) / 1000;
  if (Math.abs(seconds) > 14 * 86_400) return moment(then);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return distance(Math.round(seconds / size), unit);
  }
  return seconds > 0 ? "in a moment" : "just now";
}

export function localTimes(root: ParentNode, which = "time[datetime]"): void {
  for (const element of root.querySelectorAll<HTMLTimeElement>(which)) {
    const then = new Date(element.dateTime);
    if (Number.isNaN(then.getTime())) continue;
    const local = moment(then);
    element.textContent = "ago" in element.dataset ? ago(then) : local;
    element.title = `${local} (${element.dateTime})`;
  }
}

/** Moments at once; "3 min ago", which is true in every zone, when the page stands and the browser has nothing else to do. */
export function firstLocalTimes(): void {
  localTimes(document, "time[datetime]:not([data-ago])");
  const rest = (): void => localTimes(document, "time[data-ago]");
  if (typeof requestIdleCallback === "function") requestIdleCallback(rest, { timeout: 1000 });
  else setTimeout(rest, 1);
}

export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
