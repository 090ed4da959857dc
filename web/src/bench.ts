/**
 * The place where a submission is written: editor, upload by click or drop, a draft kept in this browser, comparison.
 *
 * All of it stands on a plain form with a file field and a text area, which is what is sent.
 */
import { Beside } from "./beside";
import { Checking } from "./checking";
import { Drafts } from "./drafts";
import type { Editor, Language } from "./editor";
import { swap } from "./regions";
import { Sending, type Try } from "./sending";

const VIM = "vim-keys";
const vim = (): boolean => localStorage.getItem(VIM) === "on";

type Enhance = (root: ParentNode) => void;

export function bench(form: HTMLFormElement, enhance: Enhance): void {
  const area = form.querySelector<HTMLTextAreaElement>("textarea[name=source]");
  const file = form.querySelector<HTMLInputElement>("input[type=file]");
  const status = form.querySelector<HTMLElement>(".status");
  const workbench = form.closest<HTMLElement>(".workbench");
  if (!area || !file || !status || !workbench) return;
  new Workplace(form, area, file, status, workbench, enhance).start();
}

const language = (form: HTMLFormElement): Promise<Language> =>
  form.dataset.language === "cpp" ? import("./languages/cpp") : import("./languages/python");

/** When the page stands: what it loads then keeps nobody waiting. */
const stands = (): Promise<void> =>
  new Promise((go) => {
    if (document.readyState === "complete") go();
    else addEventListener("load", () => setTimeout(go), { once: true });
  });

async function sourceOf(id: string): Promise<string | null> {
  const response = await fetch(`/submissions/${encodeURIComponent(id)}/file`).catch(() => null);
  return response?.ok ? response.text() : null;
}

class Workplace {
  readonly #starter: string;
  readonly #limit: number;
  readonly #drafts: Drafts;
  readonly #sending: Sending;
  readonly #beside: Beside;
  readonly #checking: Checking;
  #editor: Editor | null = null;
  #saving = 0;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly area: HTMLTextAreaElement,
    private readonly file: HTMLInputElement,
    private readonly status: HTMLElement,
    workbench: HTMLElement,
    enhance: Enhance,
  ) {
    this.#starter = area.dataset.starter ?? area.defaultValue;
    this.#limit = Number(form.dataset.limit) || 262_144;
    this.#drafts = new Drafts(form.dataset.owner ?? "", form.dataset.stage ?? "");
    this.#sending = new Sending(form);
    this.#beside = new Beside(workbench, enhance, () => this.answered());
    const box = form.querySelector<HTMLInputElement>("input[data-option=check]");
    const idle = (): boolean => !this.#sending.busy && !this.#beside.waiting;
    this.#checking = new Checking(form, () => this.#editor, idle, (text, bad) => this.say(text, bad), box);
  }

  start(): void {
    this.restore();
    this.area.addEventListener("input", () => this.changed(this.area.value));
    this.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.press(event.shiftKey);
    });
    this.file.addEventListener("change", () => void this.take([...(this.file.files ?? [])]));
    this.form.addEventListener("submit", (event) => void this.send(event));
    this.action("reset", () => this.reset());
    const comparison = this.form.querySelector<HTMLSelectElement>('select[data-action="compare"]');
    comparison?.addEventListener("change", () => void this.compare(comparison));
    this.drops();
    this.vimOption();
    this.#beside.onLine((line) => void this.open().then((editor) => editor.go(line)));
    this.#beside.onValues((values, name) => this.own(values, name));
    this.#beside.watch();
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      void stands().then(() => this.open());
    });
    seen.observe(this.area);
  }

  /** As the button of that name does. */
  private press(run: boolean): void {
    const button = this.form.querySelector<HTMLButtonElement>(run ? "button[name=run]" : "button[type=submit]:not([name])");
    if (button && !button.disabled) this.form.requestSubmit(button);
  }

  private action(name: string, act: (button: HTMLElement) => void): void {
    const button = this.form.querySelector<HTMLElement>(`[data-action="${name}"]`);
    button?.addEventListener("click", () => act(button));
  }

  #opening: Promise<Editor> | null = null;

  private open(): Promise<Editor> {
    this.#opening ??= Promise.all([import("./editor"), language(this.form)]).then(([{ openEditor }, known]) => {
      const at = document.activeElement === this.area ? this.area.selectionStart : null;
      const host = document.createElement("div");
      host.className = "editor";
      this.area.before(host);
      this.area.hidden = true;
      this.#editor = openEditor(host, {
        text: this.area.value,
        language: known,
        seam: { name: this.form.dataset.seam ?? "", signature: this.form.dataset.signature ?? "" },
        provided: JSON.parse(this.form.dataset.names ?? "[]") as [string, string, string][],
        label: `Source of ${this.form.dataset.file ?? "the submission"}`,
        changed: (text) => this.changed(text),
        submit: () => this.press(false),
        run: () => this.press(true),
      });
      if (at !== null) this.#editor.focus(at); // whoever was typing already goes on
      this.#editor.mark(this.#beside.faults());
      if (vim()) void this.#editor.vim(true);
      return this.#editor;
    });
    return this.#opening;
  }

  /** Vim's keys are a file of their own, which only they load who want them. */
  private vimOption(): void {
    const box = this.form.querySelector<HTMLInputElement>("input[data-option=vim]");
    if (!box) return;
    box.checked = vim();
    box.addEventListener("change", () => {
      localStorage.setItem(VIM, box.checked ? "on" : "off");
      void this.open().then((editor) => editor.vim(box.checked));
    });
  }

  private restore(): void {
    const draft = this.#drafts.newest();
    if (!draft || draft.text === this.#starter || this.area.value !== this.area.defaultValue) return;
    // A submission that was chosen to go on with stands before an older draft, but not before what was made of it.
    const { loaded } = this.form.dataset;
    if (loaded !== undefined && (!loaded || draft.from !== loaded)) return;
    this.area.value = draft.text;
    this.say(`Your draft of ${new Date(draft.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`);
  }

  private changed(text: string): void {
    this.area.value = text;
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.keep(text), 400);
    this.#checking.changed();
  }

  private keep(text: string): void {
    const { loaded } = this.form.dataset;
    if (text === this.#starter) {
      this.#drafts.drop();
      return this.say("The starter, unchanged");
    }
    const kept = this.#drafts.keep({ text, at: Date.now(), ...(loaded ? { from: loaded } : {}) });
    this.say(kept ? "Draft kept in this browser" : "The draft does not fit into this browser’s storage; it is kept until you leave");
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
      void this.#editor?.compare(null);
      return this.say("");
    }
    const other = choice.value === "starter" ? this.#starter : await sourceOf(choice.value);
    if (other === null) {
      choice.value = "";
      return this.say("That submission could not be fetched; try again", true);
    }
    await this.#editor?.compare(other);
    this.say(`Changes against ${choice.selectedOptions[0]?.textContent ?? "it"} are marked`);
  }

  /** A try that was just made can be compared with as well. */
  private comparable(id: string): void {
    const choice = this.form.querySelector<HTMLSelectElement>('select[data-action="compare"]');
    choice?.options.add(new Option(`${id.slice(0, 8)}: just submitted`, id), 2);
  }

  /** A readable file goes into the editor; anything else stays in the file field and is sent as it is. */
  /** Puts a file into the editor; several, where the stage takes them, as the one text that the server makes of them. */
  private async take(chosen: readonly File[]): Promise<void> {
    const main = chosen.find((file) => file.name === this.form.dataset.file) ?? chosen[0];
    if (!main) return;
    const files = this.file.multiple ? [main, ...chosen.filter((file) => file !== main)] : [main];
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const names = files.map((file) => file.name).join(", ");
    if (size > this.#limit) {
      this.file.value = "";
      return this.say(`${names} has ${size} bytes; at most ${this.#limit} are accepted`, true);
    }
    try {
      const text = joined(await Promise.all(files.map(textOf)), this.form.dataset.language === "python" ? "#" : "//");
      this.file.value = "";
      this.replace(text);
      this.say(`${names}, ${size} bytes, is in the editor`);
    } catch {
      this.say(`${names} is not a text file; it is sent as it is`, true);
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
        void this.take([...files]);
      },
      true,
    );
  }

  /** Sends the file from here and shows what comes of it beside it. */
  private async send(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    clearTimeout(this.#saving);
    this.keep(this.area.value);
    const run = (event.submitter as HTMLButtonElement | null)?.name === "run";
    if (this.#sending.busy) return; // a second press of the keys while the first is on its way would be a second submission
    this.#checking.stop();
    this.say(run ? "Sending the run…" : "Sending…");
    this.#editor?.sent();
    const made = await this.#sending.send(this.what(run));
    if ("problem" in made) return this.refuse(made.problem, made.signedOut);
    this.#editor?.mark([]);
    this.say(run ? "Running one case" : "Submitted");
    if (!run) this.comparable(made.id);
    if (!(await this.#beside.show(made.id))) location.assign(`/submissions/${made.id}`);
  }

  private what(run: boolean): Try {
    if (!run) return {};
    const chosen = this.form.querySelector<HTMLSelectElement>("select[data-action=case]");
    const own = this.form.querySelector<HTMLTextAreaElement>("#own-values");
    return { run: chosen?.value || "first", inputs: own?.value.trim() || undefined };
  }

  private refuse(problem: string, signedOut: boolean): void {
    this.say(problem, true);
    if (!signedOut) return;
    const link = document.createElement("a");
    link.href = `/sign-in?next=/stages/${this.form.dataset.stage ?? ""}`;
    link.textContent = "Sign in again";
    this.status.append(" ", link, "; what you wrote stays here.");
  }

  /** The answer is final: its lines are marked, and what stands above the code says so too. */
  private answered(): void {
    this.#editor?.mark(this.#beside.faults());
    if (!this.#sending.sent) return;
    this.say(document.getElementById("answer-body")?.dataset.announce ?? "");
    void swap(["best-so-far", "last-try"], () => undefined);
  }

  /** Values of a case, to be changed and run. */
  private own(values: string, name: string): void {
    const chosen = this.form.querySelector<HTMLSelectElement>("select[data-action=case]");
    if (chosen) chosen.value = name;
    const place = this.form.querySelector<HTMLTextAreaElement>("#own-values");
    const around = place?.closest("details");
    if (!place || !around) return;
    around.open = true;
    place.value = values;
    place.focus();
    place.scrollIntoView({ block: "nearest" });
  }

  private say(text: string, bad = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("error", bad);
  }
}

interface Text {
  name: string;
  text: string;
}

/** Throws for what is no source. */
async function textOf(file: File): Promise<Text> {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  if (text.includes("\0") || !text.trim()) throw new TypeError("not a source");
  return { name: file.name, text };
}

/** The first as it is, each other one behind a line with its name. */
function joined([first, ...others]: Text[], comment: string): string {
  return others.reduce(
    (whole, { name, text }) => `${whole}${whole.endsWith("\n") ? "" : "\n"}${comment}@file ${name}\n${text}`,
    first?.text ?? "",
  );
}
