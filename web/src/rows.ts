/** The rows of a long table that did not come with its page, fetched and put in a few at a time. */
const AT_ONCE = 25;

export async function otherRows(link: HTMLAnchorElement): Promise<void> {
  const body = document.querySelector(".course-grid tbody");
  const address = new URL(link.href);
  address.searchParams.set("rows", "rest");
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!body || !answer.ok) return;
  const rows = (await answer.text()).split("\n<tr>").map((row, place) => (place ? `<tr>${row}` : row));
  const next = (): void => {
    body.insertAdjacentHTML("beforeend", rows.splice(0, AT_ONCE).join(""));
    if (rows.length) idle(next);
    else link.parentElement?.remove();
  };
  idle(next);
}

function idle(act: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(act, { timeout: 300 });
  else setTimeout(act, 1);
}
