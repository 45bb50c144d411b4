// Our outputs follow html[data-theme]; the theme of the site keeps its choice on body.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    const chosen = document.body?.dataset.theme;
    if (!chosen) return;
    const dark = chosen === "dark" || (chosen === "auto" && system.matches);
    root.dataset.theme = dark ? "dark" : "light";
  };
  const waiting = new MutationObserver(() => {
    if (!document.body) return;
    waiting.disconnect();
    new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-theme"] });
    follow();
  });
  waiting.observe(root, { childList: true });
  system.addEventListener("change", follow);
  addEventListener("load", () => {
    // What scrolls sideways is reached by the keyboard, too.
    for (const box of document.querySelectorAll("pre, .table-wrapper, .distlab-picture, .formula"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    // What the theme leaves out for screen readers.
    document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
    for (const caption of document.querySelectorAll(".caption[role=heading]"))
      caption.ariaLevel = 2;
  });
})();
