/**
 * The place where a submission is written: editor, upload by click or drop, a draft kept in this browser, comparison.
 *
 * All of it stands on a plain form with a file field and a text area, which is what is sent.
 */
import type { Editor, Fault } from "./editor";

interface Draft {
  text: string;
  at: number;
}

export function bench(form: HTMLFormElement): void {
  const area = form.querySelector<HTMLTextAreaElement>("textarea[name=source]");
  const file = form.querySelector<HTMLInputElement>("input[type=file]");
  const status = form.querySelector<HTMLElement>(".status");
  if (!area || !file || !status) return;
  const workplace = new Workplace(form, area, file, status);
  workplace.start();
}

async function sourceOf(id: string): Promise<string | null> {
  const response = await fetch(`/submissions/${encodeURIComponent(id)}/file`).catch(() => null);
  return response?.ok ? response.text() : null;
}

class Workplace {
  readonly #starter: string;
  readonly #key: string;
  readonly #limit: number;
  #editor: Editor | null = null;
  #saving = 0;
  #sent = false;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly area: HTMLTextAreaElement,
    private readonly file: HTMLInputElement,
    private readonly status: HTMLElement,
  ) {
    this.#starter = area.dataset.starter ?? area.defaultValue;
    this.#key = `draft:${form.dataset.owner ?? ""}:${form.dataset.stage ?? ""}`;
    this.#limit = Number(form.dataset.limit) || 262_144;
  }

  start(): void {
    this.adopt();
    this.restore();
    this.area.addEventListener("input", () => this.changed(this.area.value));
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.file.addEventListener("change", () => void this.take(this.file.files?.[0]));
    this.form.addEventListener("submit", (event) => this.send(event));
    this.action("reset", () => this.reset());
    const comparison = this.form.querySelector<HTMLSelectElement>('select[data-action="compare"]');
    comparison?.addEventListener("change", () => void this.compare(comparison));
    this.drops();
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      void this.open();
    });
    seen.observe(this.area);
  }

  private action(name: string, act: (button: HTMLElement) => void): void {
    const button = this.form.querySelector<HTMLElement>(`[data-action="${name}"]`);
    button?.addEventListener("click", () => act(button));
  }

  private async open(): Promise<void> {
    const { openEditor } = await import("./editor");
    const host = document.createElement("div");
    host.className = "editor";
    this.area.before(host);
    this.area.hidden = true;
    this.#editor = openEditor(host, {
      text: this.area.value,
      language: this.form.dataset.language === "cpp" ? "cpp" : "python",
      label: `Source of ${this.form.dataset.file ?? "the submission"}`,
      changed: (text) => this.changed(text),
      submit: () => this.form.requestSubmit(),
    });
    this.#editor.point(JSON.parse(this.form.dataset.faults ?? "[]") as Fault[]);
  }

  /** What was written before signing in is the account's from then on, unless its own draft is newer. */
  private adopt(): void {
    if (!this.form.dataset.owner) return;
    const key = `draft::${this.form.dataset.stage ?? ""}`;
    const visitors = this.draft(key);
    if (!visitors) return;
    try {
      if (visitors.at > (this.draft()?.at ?? 0)) localStorage.setItem(this.#key, JSON.stringify(visitors));
      localStorage.removeItem(key);
    } catch {
      // A storage that takes nothing keeps the visitor's draft where it is.
    }
  }

  private restore(): void {
    const draft = this.draft();
    if (!draft || draft.text === this.#starter || this.area.value !== this.area.defaultValue) return;
    if (this.form.dataset.loaded !== undefined) return;
    this.area.value = draft.text;
    this.say(`Your draft of ${new Date(draft.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`);
  }

  private draft(key = this.#key): Draft | null {
    try {
      const value = JSON.parse(localStorage.getItem(key) ?? "null") as Partial<Draft> | null;
      return typeof value?.text === "string" && typeof value.at === "number" ? { text: value.text, at: value.at } : null;
    } catch {
      return null;
    }
  }

  private changed(text: string): void {
    this.area.value = text;
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.keep(text), 400);
  }

  private keep(text: string): void {
    try {
      if (text === this.#starter) localStorage.removeItem(this.#key);
      else localStorage.setItem(this.#key, JSON.stringify({ text, at: Date.now() } satisfies Draft));
      this.say(text === this.#starter ? "The starter, unchanged" : "Draft kept in this browser");
    } catch {
      this.say("The draft does not fit into this browser's storage; it is kept until you leave");
    }
  }

  private replace(text: string): void {
    this.area.value = text;
    this.#editor?.replace(text);
    this.changed(text);
  }

  private reset(): void {
    if (this.area.value !== this.#starter && !confirm("Replace what you wrote with the starter?")) return;
    this.file.value = "";
    this.replace(this.#starter);
    this.say("Back to the starter");
  }

  /** Marks what changed since the starter or an earlier submission, which is fetched when it is chosen. */
  private async compare(choice: HTMLSelectElement): Promise<void> {
    if (!choice.value) {
      this.#editor?.compare(null);
      return this.say("");
    }
    const other = choice.value === "starter" ? this.#starter : await sourceOf(choice.value);
    if (other === null) {
      choice.value = "";
      return this.say("That submission could not be fetched; try again", true);
    }
    this.#editor?.compare(other);
    this.say(`Changes against ${choice.selectedOptions[0]?.textContent ?? "it"} are marked`);
  }

  /** A readable file goes into the editor; anything else stays in the file field and is sent as it is. */
  private async take(file: File | undefined): Promise<void> {
    if (!file) return;
    if (file.size > this.#limit) {
      this.file.value = "";
      return this.say(`${file.name} has ${file.size} bytes; at most ${this.#limit} are accepted`, true);
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0") || !text.trim()) throw new TypeError("not a source");
      this.file.value = "";
      this.replace(text);
      this.say(`${file.name}, ${file.size} bytes, is in the editor`);
    } catch {
      this.say(`${file.name} is not a text file; it is sent as it is`, true);
    }
  }

  private drops(): void {
    const place = this.form.closest<HTMLElement>(".bench") ?? this.form;
    const over = (on: boolean) => (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      place.classList.toggle("dropping", on);
    };
    place.addEventListener("dragenter", over(true), true);
    place.addEventListener("dragover", over(true), true);
    place.addEventListener("dragleave", over(false), true);
    place.addEventListener(
      "drop",
      (event) => {
        over(false)(event);
        const files = event.dataTransfer?.files;
        if (!files?.length) return;
        event.stopPropagation();
        this.file.files = files;
        void this.take(files[0]);
      },
      true,
    );
  }

  private send(event: SubmitEvent): void {
    // A second press of the keys while the first is on its way would be a second submission.
    if (this.#sent) return event.preventDefault();
    this.#sent = true;
    addEventListener("pageshow", () => (this.#sent = false), { once: true });
    clearTimeout(this.#saving);
    this.keep(this.area.value);
    this.say("Sending…");
    const button = this.form.querySelector<HTMLButtonElement>("[type=submit]");
    if (button) {
      button.disabled = true;
      // Coming back by the Back button must find a form that can be sent again.
      addEventListener("pageshow", () => (button.disabled = false), { once: true });
    }
  }

  private say(text: string, bad = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("error", bad);
  }
}
