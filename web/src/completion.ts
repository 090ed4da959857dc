/** Names that one would else look up, with signatures: offered while typing, shown when pointed at. Loaded with the editor. */
import { autocompletion, completeAnyWord, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip, type EditorView } from "@codemirror/view";
import type { Known } from "./known";

/** The function that the stage asks for. */
export interface Seam {
  name: string;
  signature: string;
}

const WORD = /(?:[A-Za-z_]\w*\.)?[A-Za-z_#]\w*\.?$/;

export function completion(language: readonly Known[], seam: Seam, provided: readonly [string, string, string][]): Extension {
  const names = [...language];
  if (seam.name) names.push({ name: seam.name, signature: seam.signature, about: "what this stage asks for" });
  names.push(...provided.map(([name, signature, about]): Known => ({ name, signature, about })));
  const options = names.map(
    ({ name, signature, about }): Completion => ({
      label: name,
      detail: signature.slice(name.length),
      type: signature.includes("(") ? "function" : "constant",
      ...(about ? { info: about } : {}),
    }),
  );
  const source = (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(WORD);
    if (!word || (word.text.length < 2 && !context.explicit)) return null;
    return { from: word.from, options, validFor: /^[\w.#]*$/ };
  };
  return [autocompletion({ override: [source, completeAnyWord], icons: false, maxRenderedOptions: 40 }), hover(names)];
}

function hover(names: readonly Known[]): Extension {
  const byName = new Map(names.map((each) => [each.name, each]));
  return hoverTooltip((view, at) => {
    const found = wordAt(view, at);
    const about = found && byName.get(found.text);
    if (!about) return null;
    const create = (): { dom: HTMLElement } => {
      const dom = document.createElement("div");
      dom.className = "cm-about";
      const code = document.createElement("code");
      code.textContent = about.signature;
      dom.append(code);
      if (about.about) dom.append(document.createElement("br"), about.about);
      return { dom };
    };
    return { pos: found.from, end: found.to, above: true, create };
  });
}

function wordAt(view: EditorView, at: number): { text: string; from: number; to: number } | null {
  const line = view.state.doc.lineAt(at);
  for (const match of line.text.matchAll(/[A-Za-z_]\w*(?:\.\w+)?/g)) {
    const from = line.from + match.index;
    if (from <= at && at <= from + match[0].length) return { text: match[0], from, to: from + match[0].length };
  }
  return null;
}
