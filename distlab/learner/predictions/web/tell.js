// A form and the page around it: the way to a kernel, or else the browser's storage.
const tell = (message) => {
  const colab = window.google?.colab?.kernel;
  if (window.distlabTell) window.distlabTell(message);
  else if (colab) colab.invokeFunction("distlab.tell", [message], {});
  else return false;
  return true;
};
// A notebook keeps answers with its learner's others; a page keeps them in the browser.
const isPage = !document.getElementById("jupyter-config-data");
// Storage can be forbidden, full, or hold something else: then nothing is remembered.
const stored = (name) => {
  try {
    return isPage ? JSON.parse(localStorage.getItem(name)) : null;
  } catch {
    return null;
  }
};
const store = (name, value) => {
  try {
    if (isPage && value === null) localStorage.removeItem(name);
    else if (isPage) localStorage.setItem(name, JSON.stringify(value));
  } catch {}
};
// The notebook has its own plans for most keys, x would cut the cell; and JupyterLab
// refuses line breaks to whatever is in a cell and hears of them.
const unheard = (root) => {
  const stop = (event) => event.stopPropagation();
  root.addEventListener("keydown", stop);
  root.addEventListener("keydown", passOnSave);
  root.addEventListener("beforeinput", stop, { capture: true });
};
// A page has a script once, above most of what it is for.
const forEach = (selector, upgrade) => {
  const all = () => {
    for (const found of document.querySelectorAll(`${selector}:not([data-ready])`)) {
      found.dataset.ready = "";
      upgrade(found);
    }
  };
  all();
  if (document.readyState === "loading")
    document.addEventListener("DOMContentLoaded", all);
};
