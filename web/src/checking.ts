/**
 * Checks while somebody types, if they want it: the first case is run once they pause, and lines that it names are marked.
 *
 * It is a run like one by hand: it counts nowhere but against the limit of runs. A refusal turns it off.
 */
import type { Editor, Fault } from "./editor";

const PAUSE_MS = 1500;
const KEY = "check-while-typing";

export class Checking {
  #timer = 0;
  #busy = false;
  #again = false;
  #on = localStorage.getItem(KEY) === "on";

  constructor(
    private readonly form: HTMLFormElement,
    private readonly editor: () => Editor | null,
    private readonly idle: () => boolean,
    private readonly say: (text: string, bad?: boolean) => void,
    box: HTMLInputElement | null,
  ) {
    if (!box) {
      this.#on = false;
      return;
    }
    box.checked = this.#on;
    box.addEventListener("change", () => {
      this.#on = box.checked;
      localStorage.setItem(KEY, box.checked ? "on" : "off");
      if (this.#on) this.changed();
    });
  }

  changed(): void {
    if (!this.#on) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), PAUSE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  private async check(): Promise<void> {
    if (this.#busy || !this.idle()) return void (this.#again = true);
    const editor = this.editor();
    if (!editor) return;
    this.#busy = true;
    editor.sent();
    try {
      const faults = await this.faults();
      if (faults && this.idle()) {
        editor.mark(faults);
        this.say(faults.length ? `Checked: line ${faults[0]?.line}: ${faults[0]?.message ?? ""}` : "Checked: nothing to mark", faults.length > 0);
      }
    } finally {
      this.#busy = false;
      if (this.#again) this.changed();
      this.#again = false;
    }
  }

  /** What the first case says of lines; null where it could not be asked. */
  private async faults(): Promise<Fault[] | null> {
    const body = new FormData(this.form);
    body.delete("file");
    body.set("run", "first");
    body.set("wait", "20");
    const answer = await fetch(this.form.action, { method: "POST", body, headers: { accept: "application/json" } }).catch(() => null);
    if (!answer?.ok) {
      this.#on = answer === null;
      const after = answer?.headers.get("retry-after");
      this.say(`Checking while typing stopped: the service answered ${answer?.status ?? "nothing"}${after ? `; again in ${after} s` : ""}`, true);
      return null;
    }
    const made = (await answer.json()) as { id: string; state: string };
    if (made.state !== "done") return null;
    const page = await fetch(`/submissions/${encodeURIComponent(made.id)}/answer`, { headers: { accept: "text/html" } });
    const said = new DOMParser().parseFromString(await page.text(), "text/html").getElementById("answer-body")?.dataset.faults ?? "[]";
    return (JSON.parse(said) as [number, string][]).map(([line, message]) => ({ line, message }));
  }
}
