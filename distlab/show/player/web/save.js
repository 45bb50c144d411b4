// Ctrl+S in what keeps its keys to itself saves the notebook around it all the same.
const passOnSave = (event) => {
  const { key, code, keyCode, ctrlKey, metaKey } = event;
  const notebook = event.target.closest(".jp-Notebook");
  if (!notebook || key !== "s" || !(ctrlKey || metaKey)) return;
  event.preventDefault();
  const pressed = { key, code, keyCode, ctrlKey, metaKey, bubbles: true };
  notebook.dispatchEvent(new KeyboardEvent("keydown", pressed));
};
