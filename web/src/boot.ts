// Runs before the first paint: a chosen theme must not flash, and what needs a script must not jump in later.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
document.documentElement.classList.add("scripted");
