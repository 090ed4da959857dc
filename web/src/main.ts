/** What every page loads. Each enhancement stands on markup that works without it. */
import { answers } from "./answers";
import { bench } from "./bench";
import { copyButtons } from "./copy";
import { errorMap } from "./errormap";
import { live } from "./live";
import { keepCurrent } from "./regions";
import { otherRows } from "./rows";
import { themeSwitch } from "./theme";
import { firstLocalTimes, localTimes } from "./times";

const each = <T extends HTMLElement>(root: ParentNode, selector: string, act: (element: T) => void): void =>
  root.querySelectorAll<T>(`${selector}:not([data-enhanced])`).forEach((element) => {
    element.dataset.enhanced = "";
    act(element);
  });

function enhance(root: ParentNode): void {
  if (root === document) firstLocalTimes();
  else localTimes(root);
  copyButtons(root);
  each(root, "[data-error-map]", errorMap);
  each<HTMLFormElement>(root, "form[data-confirm]", confirmed);
  each<HTMLFormElement>(root, "form[data-index]", answers);
  each(root, "[data-figure=online_softmax]", (figure) => void import("./trace").then((m) => m.traceFigure(figure)));
}

function confirmed(form: HTMLFormElement): void {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.confirm)) event.preventDefault();
  });
}

each(document, "[data-theme-switch]", themeSwitch);
each<HTMLFormElement>(document, "form.bench-form", (form) => bench(form, enhance));
each(document, "[data-events]:not(#answer-body)", (root) => live(root, enhance));
each<HTMLAnchorElement>(document, "a[data-rest]", (link) => addEventListener("load", () => void otherRows(link)));
each<HTMLSelectElement>(document, "select[data-submits]", (select) =>
  select.addEventListener("change", () => select.form?.requestSubmit()),
);
enhance(document);
keepCurrent(enhance);
setInterval(() => localTimes(document), 30_000);
