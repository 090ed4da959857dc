/** Buttons that copy the text of the block they stand in. */
export function copyButtons(root: ParentNode): void {
  for (const block of root.querySelectorAll<HTMLElement>(".copyable:not([data-ready])")) {
    block.dataset.ready = "";
    const text = block.querySelector("pre");
    if (!text) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button tiny";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${block.dataset.what ?? "this text"}`);
    button.addEventListener("click", () => void copy(text, button));
    block.append(button);
  }
}

async function copy(text: HTMLElement, button: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    // Without https there is no clipboard: select the text, so that one key press copies it.
    getSelection()?.selectAllChildren(text);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 1800);
}
