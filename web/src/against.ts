/** Marks in the editor what changed since another text. Loaded when somebody compares. */
import { unifiedMergeView } from "@codemirror/merge";
import type { Extension } from "@codemirror/state";

export function against(original: string): Extension {
  return unifiedMergeView({ original, mergeControls: false, gutter: true, collapseUnchanged: { margin: 4, minSize: 6 } });
}
