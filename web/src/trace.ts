/** The online softmax of one query row, tile by tile: numbers can be changed, each tile is one step. */
interface Preset {
  title: string;
  scores: number[];
  values: number[];
  tile: number;
}
interface State {
  alpha: number;
  rowMax: number;
  normalizer: number;
  numerator: number;
}
const EMPTY: State = { alpha: NaN, rowMax: -Infinity, normalizer: 0, numerator: 0 };

export function step(before: State, scores: readonly number[], values: readonly number[]): State {
  const rowMax = Math.max(before.rowMax, ...scores);
  const alpha = Math.exp(before.rowMax - rowMax); // 0 for the first tile, whose old sums are empty
  const weights = scores.map((score) => Math.exp(score - rowMax));
  return {
    alpha,
    rowMax,
    normalizer: alpha * before.normalizer + weights.reduce((sum, weight) => sum + weight, 0),
    numerator: alpha * before.numerator + weights.reduce((sum, weight, j) => sum + weight * (values[j] ?? 0), 0),
  };
}

export function traceFigure(figure: HTMLElement): void {
  const presets = JSON.parse(figure.dataset.presets ?? "[]") as Preset[];
  const first = presets[0];
  if (!first) return;
  new Walk(figure, presets, structuredClone(first));
}

class Walk {
  #done = 0;
  #focus = "";

  constructor(
    private readonly figure: HTMLElement,
    private readonly presets: readonly Preset[],
    private now: Preset,
  ) {
    this.draw();
  }

  private tiles(): [number, number][] {
    const { tile, scores } = this.now;
    return Array.from({ length: Math.ceil(scores.length / tile) }, (_, n) => [n * tile, Math.min((n + 1) * tile, scores.length)]);
  }

  private states(): State[] {
    const states = [EMPTY];
    for (const [from, to] of this.tiles()) {
      states.push(step(states.at(-1) ?? EMPTY, this.now.scores.slice(from, to), this.now.values.slice(from, to)));
    }
    return states;
  }

  private draw(): void {
    const tiles = this.tiles();
    this.#done = Math.min(this.#done, tiles.length);
    this.figure.replaceChildren(this.bar(tiles.length), this.keys(tiles), this.numbers(), this.words(tiles.length));
    if (this.#focus) this.figure.querySelector<HTMLElement>(`[data-key="${this.#focus}"]`)?.focus();
  }

  private bar(count: number): HTMLElement {
    const bar = make("div", "buttons");
    this.presets.forEach((preset, n) => bar.append(this.button(preset.title, `preset${n}`, () => this.use(preset))));
    const size = make("label", "small", "keys per tile ");
    const field = this.number(this.now.tile, "tile", (value) => (this.now.tile = Math.min(Math.max(Math.round(value), 1), 32)));
    field.min = "1";
    size.append(field);
    const back = this.button("◀ Back", "back", () => (this.#done = Math.max(0, this.#done - 1)));
    const on = this.button("Next tile ▶", "next", () => (this.#done = Math.min(count, this.#done + 1)));
    on.classList.add("primary");
    back.disabled = this.#done === 0;
    on.disabled = this.#done === count;
    bar.append(size, back, on);
    return bar;
  }

  private use(preset: Preset): void {
    this.now = structuredClone(preset);
    this.#done = 0;
  }

  private button(text: string, key: string, act: () => void): HTMLButtonElement {
    const button = make("button", "button tiny", text);
    button.type = "button";
    button.dataset.key = key;
    button.addEventListener("click", () => {
      this.#focus = key;
      act();
      this.draw();
    });
    return button;
  }

  private number(value: number, key: string, set: (value: number) => void): HTMLInputElement {
    const field = make("input", "");
    field.type = "number";
    field.step = "any";
    field.value = String(Number(value.toPrecision(6)));
    field.dataset.key = key;
    field.addEventListener("change", () => {
      if (Number.isFinite(field.valueAsNumber)) set(field.valueAsNumber);
      this.#focus = key;
      this.draw();
    });
    return field;
  }

  private keys(tiles: readonly [number, number][]): HTMLElement {
    const row = make("div", "keys");
    tiles.forEach(([from, to], n) => {
      const group = make("div", `tile ${n < this.#done ? "past" : ""} ${n === this.#done - 1 ? "now" : ""}`);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", `Tile ${n + 1}`);
      for (let j = from; j < to; j++) group.append(this.key(j));
      row.append(group);
    });
    return row;
  }

  private key(j: number): HTMLElement {
    const column = make("div", "");
    const score = make("label", "", `score ${j}`);
    score.append(this.number(this.now.scores[j] ?? 0, `s${j}`, (value) => (this.now.scores[j] = value)));
    const value = make("label", "", `value ${j}`);
    value.append(this.number(this.now.values[j] ?? 0, `v${j}`, (number) => (this.now.values[j] = number)));
    column.append(score, value);
    return column;
  }

  private numbers(): HTMLElement {
    const states = this.states();
    const state = states[this.#done] ?? EMPTY;
    const before = states[this.#done - 1] ?? EMPTY;
    const list = make("dl", "state");
    const entries: [string, number, number][] = [
      ["m, running maximum", state.rowMax, before.rowMax],
      ["α = exp(m − m′)", state.alpha, 1],
      ["ℓ, normalizer", state.normalizer, before.normalizer],
      ["u, numerator", state.numerator, before.numerator],
      ["u / ℓ, output so far", state.numerator / state.normalizer, before.numerator / before.normalizer],
      ["m + log ℓ, log-sum-exp", state.rowMax + Math.log(state.normalizer), before.rowMax + Math.log(before.normalizer)],
    ];
    for (const [name, value, old] of entries) {
      const box = make("div", this.#done && value !== old ? "changed" : "");
      box.append(make("dt", "", name), make("dd", "", shown(value)));
      list.append(box);
    }
    return list;
  }

  private words(count: number): HTMLElement {
    const states = this.states();
    const text = make("p", "small quiet");
    text.setAttribute("role", "status");
    const state = states[this.#done] ?? EMPTY;
    if (this.#done === 0) text.textContent = "Before the first tile: m is −∞, ℓ and u are 0.";
    else {
      const moved = state.alpha !== 1 ? `the maximum moved, so ℓ and u were scaled by α = ${shown(state.alpha)}` : "the maximum stayed, so α is 1";
      const end = this.#done === count ? " All tiles are done." : "";
      text.textContent = `After tile ${this.#done} of ${count}: ${moved}.${end}`;
    }
    return text;
  }
}

function shown(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  return value.toFixed(4).replace("-", "−");
}

function make<K extends keyof HTMLElementTagNameMap>(tag: K, style: string, text = ""): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (style) element.className = style;
  element.textContent = text;
  return element;
}
