/** What stands beside the editor: the lesson, or the answer to the last try, which is watched until it is final. */
import type { Fault } from "./editor";
import { live } from "./live";
import { fetchPage } from "./regions";

type View = "lesson" | "code" | "answer";
const NARROW = "(max-width: 1179px)";

export class Beside {
  constructor(
    private readonly workbench: HTMLElement,
    private readonly enhance: (root: ParentNode) => void,
    private readonly answered: () => void,
  ) {
    for (const button of workbench.querySelectorAll<HTMLElement>("[data-view]"))
      button.addEventListener("click", () => this.view(button.dataset.view as View, true));
    workbench.addEventListener("click", (event) => {
      if ((event.target as Element).closest("a[data-shows=answer]")) this.view("answer");
    });
  }

  view(shown: View, seen = false): void {
    this.workbench.dataset.shows = shown;
    for (const button of this.workbench.querySelectorAll<HTMLElement>("[data-view]"))
      button.setAttribute("aria-pressed", String(button.dataset.view === shown));
    if (seen || matchMedia(NARROW).matches) this.workbench.scrollIntoView({ block: "start" });
  }

  /** Shows the answer to a submission or a run, and watches it. Returns whether it could be fetched. */
  async show(id: string): Promise<boolean> {
    const fresh = await fetchPage(`/submissions/${encodeURIComponent(id)}/answer`).catch(() => null);
    const next = fresh?.getElementById("answer");
    if (!next) return false;
    document.getElementById("answer")?.replaceWith(document.adoptNode(next));
    this.workbench.classList.add("answered");
    this.view("answer");
    this.enhance(next);
    const address = new URL(location.href);
    address.search = `?answer=${encodeURIComponent(id)}`;
    history.replaceState(null, "", address);
    this.watch();
    return true;
  }

  /** Whether an answer is still on its way. */
  get waiting(): boolean {
    return Boolean(document.getElementById("answer-body")?.dataset.events);
  }

  /** Follows the answer that stands here until it is final. */
  watch(): void {
    const body = document.getElementById("answer-body");
    if (!body) return;
    if (body.dataset.events) live(body, this.enhance, this.answered);
    else this.answered();
  }

  faults(): Fault[] {
    const said = document.getElementById("answer-body")?.dataset.faults ?? "[]";
    return (JSON.parse(said) as [number, string][]).map(([line, message]) => ({ line, message }));
  }

  /** Calls `act` with the line whenever a line of the file is chosen in the answer. */
  onLine(act: (line: number) => void): void {
    this.workbench.addEventListener("click", (event) => {
      const link = (event.target as Element).closest<HTMLElement>("[data-line]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (matchMedia(NARROW).matches) this.view("code");
      act(Number(link.dataset.line));
    });
  }

  /** Calls `act` with the values of the case that was run, as JSON, when its button is pressed. */
  onValues(act: (values: string, caseName: string) => void): void {
    this.workbench.addEventListener("click", (event) => {
      const button = (event.target as Element).closest<HTMLElement>("[data-action=own]");
      if (!button) return;
      if (matchMedia(NARROW).matches) this.view("code");
      act(button.dataset.own ?? "", button.dataset.case ?? "");
    });
  }
}
