/** Parts of a page that are kept current: fetched as the page they stand on, and swapped where they differ. */
type Enhance = (root: ParentNode) => void;

export async function fetchPage(address: string): Promise<Document | null> {
  const response = await fetch(address, { headers: { accept: "text/html" }, credentials: "same-origin" });
  if (!response.ok) return null;
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/**
 * Swaps the elements with these ids for those of a page as it is now, this one by default. Returns whether it could be read.
 *
 * What a reader is at is left alone: what has the focus, what is ticked. `whatever`: swapped all the same.
 */
export async function swap(
  ids: readonly string[],
  enhance: Enhance,
  { from = location.href, whatever = false }: { from?: string; whatever?: boolean } = {},
): Promise<boolean> {
  const fresh = await fetchPage(from).catch(() => null);
  if (!fresh) return false;
  for (const id of ids) {
    const old = document.getElementById(id);
    const next = fresh.getElementById(id);
    if (!old || !next || old.dataset.as === next.outerHTML) continue;
    if (!whatever && (old.contains(document.activeElement) || old.querySelector("input:checked"))) continue;
    next.dataset.as = next.outerHTML;
    const adopted = document.adoptNode(next);
    old.replaceWith(adopted);
    enhance(adopted.parentElement ?? document);
  }
  return true;
}

/** Refreshes every region that asks for it (`data-every`, in seconds) while the page is looked at. */
export function keepCurrent(enhance: Enhance): void {
  const regions = [...document.querySelectorAll<HTMLElement>("[data-every][id]")];
  if (!regions.length) return;
  const ids = regions.map((region) => region.id);
  const seconds = Math.max(3, Math.min(...regions.map((region) => Number(region.dataset.every) || 30)));
  let failures = 0;
  const tick = async (): Promise<void> => {
    if (document.visibilityState === "visible") failures = (await swap(ids, enhance)) ? 0 : failures + 1;
    setTimeout(() => void tick(), seconds * 1000 * Math.min(2 ** failures, 16));
  };
  setTimeout(() => void tick(), seconds * 1000);
}
