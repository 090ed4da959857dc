/**
 * A submission on its way: events move phases and cases on the page; the verdict is the server's own page, swapped in.
 *
 * The browser reconnects an EventSource by itself and names the last event it saw. What arrives twice changes nothing twice.
 */
import { swap } from "./regions";
import { duration } from "./times";

interface PhaseEvent {
  phase: string;
  state: "started" | "ended";
  ms?: number;
}
interface CaseEvent {
  index: number;
  total: number;
  name: string;
  state: "right" | "wrong" | "failed";
  ms?: number;
}
interface StateEvent {
  state: "queued" | "running" | "done" | "cancelled";
  attempt: number;
  note?: string;
}

const MARKS = { right: "✓", wrong: "✗", failed: "!" } as const;
const WORDS = { right: "right", wrong: "wrong", failed: "failed" } as const;

/** `root` says where its events come from, and from which page it is swapped when they have ended. `done`: called then. */
export function live(root: HTMLElement, enhance: (root: ParentNode) => void, done = (): void => undefined): void {
  const address = root.dataset.events;
  if (!address) return;
  const source = new EventSource(address);
  const from = root.dataset.from ?? location.href;
  const page = new Progress(root, from);
  let finishing = false;
  const on = <T>(kind: string, act: (data: T) => void): void =>
    source.addEventListener(kind, (event) => {
      const said = JSON.parse((event as MessageEvent<string>).data) as { data: T };
      act(said.data);
    });

  const finish = async (): Promise<void> => {
    source.close();
    page.stop();
    if (finishing || !root.isConnected) return; // the last events come two at once; another answer may stand here by now
    finishing = true;
    if (!(await swap([root.id], enhance, { from, whatever: true }))) {
      finishing = false;
      setTimeout(() => void finish(), 2000);
      return;
    }
    const headline = document.getElementById(root.id);
    if (headline?.dataset.announce) announce(headline.dataset.announce);
    if (headline?.dataset.title) document.title = headline.dataset.title;
    done();
  };
  on<PhaseEvent>("phase", (data) => page.phase(data));
  on<CaseEvent>("case", (data) => page.case(data));
  on("measure", () => page.measure());
  on<StateEvent>("state", (data) => {
    page.state(data);
    if (data.state === "done" || data.state === "cancelled") void finish();
  });
  on("result", () => void finish());
  source.addEventListener("open", () => page.connection(true));
  source.addEventListener("error", () => page.connection(false));
  addEventListener("pagehide", () => source.close(), { once: true });
  page.queue(enhance);
}

export function announce(text: string): void {
  const status = document.getElementById("announcer");
  if (status) status.textContent = text;
}

class Progress {
  #clock = 0;
  #over = false;
  #drawing = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly from: string,
  ) {}

  /** While it waits, its place in the queue is asked for every few seconds. */
  queue(enhance: (root: ParentNode) => void): void {
    const again = (): void => {
      if (this.#over || !document.getElementById("queue-place")) return;
      setTimeout(() => void swap(["queue-place"], enhance, { from: this.from }).then(again), 3000);
    };
    again();
  }

  stop(): void {
    this.#over = true;
    clearInterval(this.#clock);
  }

  connection(open: boolean): void {
    const note = this.root.querySelector<HTMLElement>("[data-connection]");
    if (note) note.hidden = open;
  }

  state(data: StateEvent): void {
    const badge = this.root.querySelector<HTMLElement>("[data-state-word]");
    if (badge) badge.textContent = data.state === "queued" ? "Queued" : "Running";
    if (data.state === "queued" && data.note) this.say(data.note);
    if (data.state !== "running") return;
    document.getElementById("queue-place")?.remove();
    if (data.attempt > 1) this.restart();
    this.say("Grading has started");
  }

  /** A new attempt begins at the first case again. */
  private restart(): void {
    for (const item of this.root.querySelectorAll(".phases li")) item.className = "";
    for (const cell of this.root.querySelectorAll<HTMLElement>(".case")) {
      cell.className = "case";
      const mark = cell.querySelector(".mark");
      if (mark) mark.textContent = "·";
    }
  }

  phase(data: PhaseEvent): void {
    const item = this.root.querySelector<HTMLElement>(`[data-phase="${CSS.escape(data.phase)}"]`);
    if (!item) return;
    item.hidden = false;
    clearInterval(this.#clock);
    const time = item.querySelector(".ms");
    item.className = data.state === "ended" ? "past" : "now";
    if (data.state === "ended") {
      if (time && data.ms !== undefined) time.textContent = duration(data.ms);
      return;
    }
    const began = performance.now();
    this.#clock = setInterval(() => {
      if (time) time.textContent = duration(performance.now() - began);
    }, 100);
    this.say(item.dataset.says ?? data.phase);
  }

  case(data: CaseEvent): void {
    const cell = this.root.querySelector<HTMLElement>(`[data-case="${CSS.escape(data.name)}"]`);
    if (cell) {
      cell.className = `case ${data.state}`;
      const mark = cell.querySelector(".mark");
      const words = cell.querySelector(".unseen");
      if (mark) mark.textContent = MARKS[data.state];
      if (words) words.textContent = `${cell.title}: ${WORDS[data.state]}`;
    }
    const next = this.root.querySelector<HTMLElement>(`[data-index="${data.index + 1}"]`);
    if (next?.className === "case") next.classList.add("now");
    const count = this.root.querySelector<HTMLElement>("[data-count]");
    if (count) count.textContent = `${data.index + 1} of ${data.total}`;
  }

  /** The server draws what is known; while a fetch of that is under way, later looks wait for the next one. */
  measure(): void {
    if (this.#drawing || this.#over) return;
    this.#drawing = true;
    void swap(["converging"], () => undefined, { from: this.from }).finally(() => setTimeout(() => (this.#drawing = false), 250));
  }

  private say(text: string): void {
    const line = this.root.querySelector("[data-status]");
    if (line) line.textContent = text;
    announce(text);
  }
}
