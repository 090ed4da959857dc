/** What the editor knows of CUDA C++: its grammar and its names. */
import { cpp } from "@codemirror/lang-cpp";
import { known } from "../known";
import { CUDA } from "../names/cuda";

export const grammar = cpp();
export const names = known(CUDA);
