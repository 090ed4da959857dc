/** What the editor knows of Python: its grammar, and the names of Triton and PyTorch. */
import { python } from "@codemirror/lang-python";
import { known } from "../known";
import { TORCH } from "../names/torch";
import { TRITON } from "../names/triton";

export const grammar = python();
export const names = [...known(TRITON), ...known(TORCH)];
