/** Times in the viewer's zone and words; the server writes them in UTC. */
const ABSOLUTE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function ago(then: Date, now: Date = new Date()): string {
  const seconds = (then.getTime() - now.getTime()) / 1000;
  if (Math.abs(seconds) > 14 * 86_400) return ABSOLUTE.format(then);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.round(seconds / size), unit);
  }
  return seconds > 0 ? "in a moment" : "just now";
}

export function localTimes(root: ParentNode): void {
  for (const element of root.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
    const then = new Date(element.dateTime);
    if (Number.isNaN(then.getTime())) continue;
    const absolute = ABSOLUTE.format(then);
    element.textContent = "ago" in element.dataset ? ago(then) : absolute;
    element.title = `${absolute} (${element.dateTime})`;
  }
}

export function duration(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
