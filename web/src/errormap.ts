/** Says which part of the tensor the pointer is over: the picture's cell as rows, columns and size of the error. */
export function errorMap(figure: HTMLElement): void {
  const { cells, rows, columns, rowStep, columnStep, rowAxis, columnAxis } = figure.dataset;
  const frame = figure.querySelector<SVGImageElement>("image");
  const line = figure.querySelector<HTMLElement>("[data-under]");
  if (!cells || !frame || !line) return;
  const levels = Uint8Array.from(atob(cells), (letter) => letter.charCodeAt(0));
  const [height, width] = [Number(rows), Number(columns)];
  const part = (axis: string | undefined, place: number, step: number): string =>
    step === 1 ? `${axis} ${place}` : `${axis} ${place * step} to ${place * step + step - 1}`;
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    const row = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
    const column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    const where = `${part(rowAxis, row, Number(rowStep))}, ${part(columnAxis, column, Number(columnStep))}`;
    line.textContent = `${where}: ${size(levels[row * width + column] ?? 0)}`;
  });
}

function size(level: number): string {
  if (level === 0) return "within the tolerance";
  if (level === 255) return "NaN, infinite or never written";
  const factor = 10 ** ((6 * (level - 1)) / 253);
  return `${factor < 100 ? factor.toPrecision(2) : factor.toExponential(1)} times the tolerance`;
}
