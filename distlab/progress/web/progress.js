(() => {
  // Answers to cards are in the browser's storage, and nowhere else.
  const known = {}, answered = {};
  try {
    for (const [name, text] of Object.entries(localStorage)) {
      const id = name.match(/^distlab\.card\.(\d+)-/);
      if (!id) continue;
      const card = JSON.parse(text);
      if (!card.answer) continue;
      answered[id[1]] = (answered[id[1]] ?? 0) + 1;
      const all = card.of && card.ticked.length >= card.of;
      known[id[1]] = (known[id[1]] ?? 0) + (all ? 1 : 0);
    }
  } catch {
    return; // storage can be forbidden, or hold something else
  }
  if (!Object.keys(answered).length) return;
  const root = document.currentScript?.closest(".distlab-progress");
  for (const page of root ? [root] : document.querySelectorAll(".distlab-progress"))
    for (const cell of page.querySelectorAll(".cards")) {
      cell.hidden = false;
      const lesson = cell.parentElement.dataset.lesson;
      if (answered[lesson])
        cell.textContent = `${known[lesson]} known, ${answered[lesson]} answered`;
    }
})();
