/**
 * The code editor, loaded only where one is opened.
 *
 * It lives in a shadow root: there CodeMirror adopts constructed style sheets, which the page's policy against inline
 * styles does not concern. Colours are the page's custom properties, which shine through.
 */
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "light-dark(#8a2aa0, #d39bf0)" },
  { tag: [tags.typeName, tags.className], color: "light-dark(#0b57a8, #74b3f5)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#1c6b36, #86d79e)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#a33b00, #f0a978)" },
  { tag: tags.comment, color: "light-dark(#5c666c, #97a2a8)", fontStyle: "italic" },
  { tag: [tags.processingInstruction, tags.meta], color: "light-dark(#805200, #e3b04b)" },
  { tag: tags.function(tags.definition(tags.variableName)), color: "light-dark(#0a5c8f, #7cc4f2)" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "13.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--quiet)", border: "none", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent) !important",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--near) 22%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--accent) 22%, transparent)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line-strong)" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft)" },
  ".cm-changedLine": { backgroundColor: "var(--good-soft) !important" },
  ".cm-changedText": { background: "color-mix(in srgb, var(--good) 28%, transparent) !important" },
  ".cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--bad) 28%, transparent) !important" },
});

export interface EditorOptions {
  text: string;
  language: "python" | "cpp";
  label: string;
  changed: (text: string) => void;
  submit: () => void;
}

/** A line of the text, counted from 1, and what a compiler or a traceback said about it. */
export interface Fault {
  line: number;
  message: string;
}

export interface Editor {
  text(): string;
  replace(text: string): void;
  compare(original: string | null): void;
  point(faults: readonly Fault[]): void;
  focus(): void;
}

export function openEditor(host: HTMLElement, options: EditorOptions): Editor {
  const root = host.attachShadow({ mode: "open", delegatesFocus: true });
  const comparison = new Compartment();
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({ doc: options.text, extensions: [extensions(options), comparison.of([])] }),
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    compare: (original) => view.dispatch({ effects: comparison.reconfigure(original === null ? [] : against(original)) }),
    point: (faults) => point(view, faults),
    focus: () => view.focus(),
  };
}

function extensions(options: EditorOptions): Extension {
  return [
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    indentUnit.of("    "),
    EditorState.tabSize.of(4),
    options.language === "python" ? python() : cpp(),
    syntaxHighlighting(COLOURS),
    LOOK,
    EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.changed(update.state.doc.toString());
    }),
    keymap.of([
      { key: "Mod-Enter", run: () => (options.submit(), true) },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      indentWithTab,
    ]),
  ];
}

function against(original: string): Extension {
  return unifiedMergeView({ original, mergeControls: false, gutter: true, collapseUnchanged: { margin: 4, minSize: 6 } });
}

function point(view: EditorView, faults: readonly Fault[]): void {
  const found = faults.map((fault): Diagnostic => {
    const line = view.state.doc.line(Math.min(Math.max(fault.line, 1), view.state.doc.lines));
    return { from: line.from, to: line.to, severity: "error", message: fault.message };
  });
  const first = found[0];
  if (!first) return;
  const ordered = [...found].sort((a, b) => a.from - b.from);
  view.dispatch(setDiagnostics(view.state, ordered), { selection: { anchor: first.from }, scrollIntoView: true });
}
