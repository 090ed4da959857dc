/**
 * The code editor, loaded only where one is opened.
 *
 * It lives in a shadow root: there CodeMirror adopts constructed style sheets, which the page's policy against inline
 * styles does not concern. Colours are the page's custom properties, which shine through.
 */
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { ChangeSet, Compartment, EditorState, Text, type Extension, type Line } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completion, type Seam } from "./completion";
import type { Known } from "./known";

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
  // A flex item of the host, which would else be as wide as the longest line and scroll the gutter away.
  "&": { height: "100%", flex: "1", minWidth: "0", color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "13.5px" },
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
  ".cm-tooltip .cm-about": { padding: "4px 8px", maxWidth: "36em", fontSize: "12.5px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.75", marginLeft: "0.2em" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft)" },
  ".cm-changedLine": { backgroundColor: "var(--good-soft) !important" },
  ".cm-changedText": { background: "color-mix(in srgb, var(--good) 28%, transparent) !important" },
  ".cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--bad) 28%, transparent) !important" },
});

/** A file of its own for each, of which a stage's page loads one. */
export interface Language {
  grammar: Extension;
  names: readonly Known[];
}

export interface EditorOptions {
  text: string;
  language: Language;
  label: string;
  seam: Seam;
  /** What the stage's own files define: name, signature, where. */
  provided: [string, string, string][];
  changed: (text: string) => void;
  submit: () => void;
  run: () => void;
}

/** A line of the text, counted from 1, and what a compiler or a traceback said about it. */
export interface Fault {
  line: number;
  message: string;
}

export interface Editor {
  text(): string;
  replace(text: string): void;
  compare(original: string | null): Promise<void>;
  vim(on: boolean): Promise<void>;
  /** From now on `mark` speaks of the text as it is at this moment, wherever its lines have moved to meanwhile. */
  sent(): void;
  /** Marks lines of the text that was sent last, and nothing else. */
  mark(faults: readonly Fault[]): void;
  /** Puts the cursor on a line of the text that was sent last. */
  go(line: number): void;
  /** Puts the cursor behind that many characters. */
  focus(at: number): void;
}

export function openEditor(host: HTMLElement, options: EditorOptions): Editor {
  const root = host.attachShadow({ mode: "open", delegatesFocus: true });
  const comparison = new Compartment();
  const keys = new Compartment();
  let was = Text.of(options.text.split("\n"));
  let since: ChangeSet = ChangeSet.empty(was.length);
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keys.of([]), // before all others: what they bind comes second
        extensions(options),
        comparison.of([]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) since = since.compose(update.changes);
        }),
      ],
    }),
  });
  const sent = (): void => {
    was = view.state.doc;
    since = ChangeSet.empty(was.length);
  };
  sent();
  const place = (line: number): Line => {
    const then = was.line(Math.min(Math.max(line, 1), was.lines));
    return view.state.doc.lineAt(since.mapPos(then.from, 1));
  };
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    compare: async (original) => {
      const changes = original === null ? [] : (await import("./against")).against(original);
      view.dispatch({ effects: comparison.reconfigure(changes) });
    },
    sent,
    vim: async (on) => {
      const found = on ? (await import("@replit/codemirror-vim")).vim({ status: true }) : [];
      view.dispatch({ effects: keys.reconfigure(found) });
    },
    mark: (faults) => {
      const found = faults.map((fault): Diagnostic => {
        const { from, to } = place(fault.line);
        return { from, to, severity: "error", message: fault.message };
      });
      view.dispatch(setDiagnostics(view.state, found.sort((a, b) => a.from - b.from)));
    },
    go: (line) => {
      view.dispatch({ selection: { anchor: place(line).from }, effects: EditorView.scrollIntoView(place(line).from, { y: "center" }) });
      view.focus();
    },
    focus: (at) => {
      view.dispatch({ selection: { anchor: at } });
      view.focus();
    },
  };
}

/**
 * What is typed over a selection is put there by the editor: left to itself the browser keeps the look of what it replaces as an
 * inline style, which the page's policy refuses.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection;
    const text = event.data;
    if (event.inputType !== "insertText" || !text || main.empty || ranges.length > 1 || view.composing) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update({
        changes: { from: main.from, to: main.to, insert: text },
        selection: { anchor: main.from + text.length },
        userEvent: "input.type",
        scrollIntoView: true,
      });
    const handled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, main.from, main.to, text, insert));
    if (!handled) view.dispatch(insert());
    return true;
  },
});

function extensions(options: EditorOptions): Extension {
  return [
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    completion(options.language.names, options.seam, options.provided),
    typedOver,
    highlightActiveLine(),
    highlightSelectionMatches(),
    indentUnit.of("    "),
    EditorState.tabSize.of(4),
    options.language.grammar,
    syntaxHighlighting(COLOURS),
    LOOK,
    EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.changed(update.state.doc.toString());
    }),
    keymap.of([
      { key: "Mod-Shift-Enter", run: () => (options.run(), true) },
      { key: "Mod-Enter", run: () => (options.submit(), true) },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      indentWithTab,
    ]),
  ];
}
