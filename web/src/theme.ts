/** The switch between the system's theme, light and dark; `boot.ts` applies what was chosen here. */
const ORDER = ["auto", "light", "dark"] as const;
type Theme = (typeof ORDER)[number];

function chosen(): Theme {
  const stored = localStorage.getItem("theme");
  return stored === "light" || stored === "dark" ? stored : "auto";
}

function apply(theme: Theme, button: HTMLElement): void {
  if (theme === "auto") {
    localStorage.removeItem("theme");
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem("theme", theme);
    document.documentElement.dataset.theme = theme;
  }
  label(theme, button);
}

function label(theme: Theme, button: HTMLElement): void {
  const words = { auto: "as the system", light: "light", dark: "dark" }[theme];
  button.setAttribute("aria-label", `Theme: ${words}. Change`);
  button.title = `Theme: ${words}`;
}

export function themeSwitch(button: HTMLElement): void {
  label(chosen(), button);
  button.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length] ?? "auto";
    apply(next, button);
  });
}
