/**
 * The error map, looked at closely: zoomed by buttons, double click, keys or Ctrl and the wheel, moved by dragging.
 *
 * The picture is the server's. What it shows of it is the view box of the inner drawing, counted in cells, so zooming draws
 * nothing but the numbers at the axes anew.
 */
interface View {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

const FEWEST = 4;
const SVG = "http://www.w3.org/2000/svg";

export function errorMap(figure: HTMLElement): void {
  const panes = {
    frame: figure.querySelector<HTMLElement>(".frame"),
    window: figure.querySelector<SVGSVGElement>("svg.window"),
    ticks: figure.querySelector<SVGGElement>("[data-ticks]"),
    under: figure.querySelector<HTMLElement>("[data-under]"),
    buttons: figure.querySelector<HTMLElement>("[data-zoom]"),
  };
  const { frame, window, ticks, under, buttons } = panes;
  if (!frame || !window || !ticks || !under || !buttons || !figure.dataset.cells) return;
  new Glass(figure, { frame, window, ticks, under, buttons });
}

interface Panes {
  frame: HTMLElement;
  window: SVGSVGElement;
  ticks: SVGGElement;
  under: HTMLElement;
  buttons: HTMLElement;
}

class Glass {
  readonly #levels: Uint8Array;
  readonly #rows: number;
  readonly #columns: number;
  readonly #size: { width: number; height: number };
  readonly #marker: SVGRectElement;
  #view: View;
  #at: { row: number; column: number };
  #drag: { x: number; y: number; view: View } | null = null;

  constructor(
    private readonly figure: HTMLElement,
    private readonly panes: Panes,
  ) {
    this.#levels = Uint8Array.from(atob(figure.dataset.cells ?? ""), (letter) => letter.charCodeAt(0));
    [this.#rows, this.#columns] = [Number(figure.dataset.rows), Number(figure.dataset.columns)];
    this.#size = { width: panes.window.width.baseVal.value, height: panes.window.height.baseVal.value };
    const [row = 0, column = 0] = (figure.dataset.first ?? "0 0").split(" ").map(Number);
    this.#at = { row, column };
    this.#view = { row: 0, column: 0, rows: this.#rows, columns: this.#columns };
    this.#marker = document.createElementNS(SVG, "rect");
    this.#marker.classList.add("marker");
    this.#marker.setAttribute("visibility", "hidden");
    panes.window.append(this.#marker);
    this.listen();
  }

  private listen(): void {
    const { frame, window, buttons } = this.panes;
    // A map of a handful of cells is seen whole; there is nothing to come closer to.
    const small = this.#rows <= FEWEST && this.#columns <= FEWEST;
    for (const [text, label, act] of small ? [] : [
      ["+", "Zoom in", () => this.zoom(0.5, this.#at)],
      ["−", "Zoom out", () => this.zoom(2, this.#at)],
      ["Whole", "Show the whole map", () => this.whole()],
      ["First wrong", "Zoom to the first wrong cell", () => this.first()],
    ] as const) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button tiny";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", act);
      buttons.append(button);
    }
    frame.setAttribute("role", "application");
    frame.setAttribute("aria-label", "Error map: arrow keys read cells, plus and minus zoom, 0 shows all of it");
    frame.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("pointermove", (event) => this.move(event));
    window.addEventListener("pointerdown", (event) => this.grab(event));
    window.addEventListener("pointerup", () => (this.#drag = null));
    window.addEventListener("pointercancel", () => (this.#drag = null));
    window.addEventListener("dblclick", (event) => this.zoom(0.5, this.under(event)));
    window.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  private under(event: MouseEvent): { row: number; column: number } {
    const box = this.panes.window.getBoundingClientRect();
    const share = (place: number, start: number, length: number): number => Math.min(0.999999, Math.max(0, (place - start) / length));
    return {
      row: Math.floor(this.#view.row + share(event.clientY, box.top, box.height) * this.#view.rows),
      column: Math.floor(this.#view.column + share(event.clientX, box.left, box.width) * this.#view.columns),
    };
  }

  private move(event: PointerEvent): void {
    if (this.#drag) {
      const box = this.panes.window.getBoundingClientRect();
      const { x, y, view } = this.#drag;
      this.look({
        ...view,
        row: view.row - ((event.clientY - y) / box.height) * view.rows,
        column: view.column - ((event.clientX - x) / box.width) * view.columns,
      });
    }
    this.read(this.under(event));
  }

  private grab(event: PointerEvent): void {
    if (this.#view.columns === this.#columns && this.#view.rows === this.#rows) return;
    this.#drag = { x: event.clientX, y: event.clientY, view: { ...this.#view } };
    this.panes.window.setPointerCapture(event.pointerId);
  }

  /** Without Ctrl the wheel scrolls the page, as everywhere. */
  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 0.75 : 1 / 0.75, this.under(event));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { row, column } = this.#at;
    const acts: Record<string, () => void> = {
      ArrowUp: () => this.read({ row: row - 1, column }),
      ArrowDown: () => this.read({ row: row + 1, column }),
      ArrowLeft: () => this.read({ row, column: column - 1 }),
      ArrowRight: () => this.read({ row, column: column + 1 }),
      "+": () => this.zoom(0.5, this.#at),
      "=": () => this.zoom(0.5, this.#at),
      "-": () => this.zoom(2, this.#at),
      "0": () => this.whole(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    if (event.key.startsWith("Arrow")) this.follow();
  }

  private whole(): void {
    this.look({ row: 0, column: 0, rows: this.#rows, columns: this.#columns });
  }

  private first(): void {
    const [row = 0, column = 0] = (this.figure.dataset.first ?? "0 0").split(" ").map(Number);
    const [rows, columns] = [Math.min(this.#rows, 16), Math.min(this.#columns, 16)];
    this.look({ row: row - rows / 2, column: column - columns / 2, rows, columns });
    this.read({ row, column });
  }

  /** `factor` of what is seen now, with the cell `at` staying where it is; at least four cells are seen. */
  private zoom(factor: number, at: { row: number; column: number }): void {
    const view = this.#view;
    const scaled = (length: number, all: number): number => Math.min(all, Math.max(Math.min(FEWEST, all), length * factor));
    const rows = scaled(view.rows, this.#rows);
    const columns = scaled(view.columns, this.#columns);
    this.look({
      rows,
      columns,
      row: at.row + 0.5 - ((at.row + 0.5 - view.row) / view.rows) * rows,
      column: at.column + 0.5 - ((at.column + 0.5 - view.column) / view.columns) * columns,
    });
  }

  private look(view: View): void {
    const inside = (place: number, length: number, all: number): number => Math.min(Math.max(0, place), all - length);
    this.#view = {
      ...view,
      row: inside(view.row, view.rows, this.#rows),
      column: inside(view.column, view.columns, this.#columns),
    };
    const { row, column, rows, columns } = this.#view;
    this.panes.window.setAttribute("viewBox", `${column} ${row} ${columns} ${rows}`);
    this.panes.window.classList.toggle("zoomed", rows < this.#rows || columns < this.#columns);
    this.label();
  }

  /** Keeps the cell that the keys reached in sight. */
  private follow(): void {
    const { row, column, rows, columns } = this.#view;
    const near = (place: number, start: number, length: number): number =>
      place < start ? place : place + 1 > start + length ? place + 1 - length : start;
    this.look({ ...this.#view, row: near(this.#at.row, row, rows), column: near(this.#at.column, column, columns) });
  }

  private label(): void {
    const { width, height } = this.#size;
    const { row, column, rows, columns } = this.#view;
    const steps = { row: Number(this.figure.dataset.rowStep), column: Number(this.figure.dataset.columnStep) };
    const texts: SVGTextElement[] = [];
    for (const at of places(row, rows, height)) texts.push(text(String(at * steps.row), -6, ((at + 0.5 - row) / rows) * height, "end"));
    for (const at of places(column, columns, width)) {
      texts.push(text(String(at * steps.column), ((at + 0.5 - column) / columns) * width, height + 14, "middle"));
    }
    this.panes.ticks.replaceChildren(...texts);
  }

  private read(at: { row: number; column: number }): void {
    const row = Math.min(this.#rows - 1, Math.max(0, at.row));
    const column = Math.min(this.#columns - 1, Math.max(0, at.column));
    this.#at = { row, column };
    const marker = { x: column, y: row, width: 1, height: 1, visibility: "visible" };
    for (const [name, value] of Object.entries(marker)) this.#marker.setAttribute(name, String(value));
    const { rowStep, columnStep, rowAxis, columnAxis } = this.figure.dataset;
    const where = `${part(rowAxis, row, Number(rowStep))}, ${part(columnAxis, column, Number(columnStep))}`;
    this.panes.under.textContent = `${where}: ${size(this.#levels[row * this.#columns + column] ?? 0)}`;
  }
}

/** Whole cells to number at an axis that shows `length` cells from `start` on `pixels`: about one every 50 px. */
function places(start: number, length: number, pixels: number): number[] {
  const every = 2 ** Math.max(0, Math.ceil(Math.log2((34 * length) / pixels)));
  const found: number[] = [];
  for (let at = Math.ceil((start - 0.5) / every) * every; at + 0.5 <= start + length; at += every) if (at + 0.5 >= start) found.push(at);
  return found;
}

function text(words: string, x: number, y: number, anchor: string): SVGTextElement {
  const element = document.createElementNS(SVG, "text");
  element.textContent = words;
  const attributes = { x, y, "text-anchor": anchor, ...(anchor === "end" ? { "dominant-baseline": "middle" } : {}) };
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

function part(axis: string | undefined, place: number, step: number): string {
  return step === 1 ? `${axis} ${place}` : `${axis} ${place * step} to ${place * step + step - 1}`;
}

function size(level: number): string {
  if (level === 0) return "within the tolerance";
  if (level === 255) return "NaN, infinite or never written";
  const factor = 10 ** ((6 * (level - 1)) / 253);
  return `${factor < 100 ? factor.toPrecision(2) : factor.toExponential(1)} times the tolerance`;
}
