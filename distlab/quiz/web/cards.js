(() => {
  // The notebook has its own plans for most keys: x would cut the cell.
  for (const cards of document.querySelectorAll(".distlab-cards"))
    cards.onkeydown = (event) => event.stopPropagation();

  // A notebook keeps answers with the learner's others; a page keeps them in the browser.
  const isPage = !document.getElementById("jupyter-config-data");
  const tell = (value) => {
    const colab = window.google?.colab?.kernel;
    if (window.distlabTell) window.distlabTell({ to: "cards", value });
    else if (colab) colab.invokeFunction("distlab.tell", [{ to: "cards", value }], {});
    else return false;
    return true;
  };
  // Storage can be forbidden, full, or hold something else: then nothing is remembered.
  const recall = (card) => {
    try {
      const stored = isPage && localStorage.getItem("distlab.card." + card.dataset.card);
      const kept = JSON.parse(stored || card.dataset.kept);
      return { answer: String(kept.answer ?? ""), ticked: Array.from(kept.ticked ?? []) };
    } catch {
      return { answer: "", ticked: [] };
    }
  };
  const waiting = {};
  const remember = (id, kept) => {
    clearTimeout(waiting[id]);
    waiting[id] = setTimeout(() => tell({ id, ...kept }), 400);
    if (!isPage) return;
    try {
      localStorage.setItem("distlab.card." + id, JSON.stringify(kept));
    } catch {}
  };

  // One card at a time: how well it was known decides when it comes back.
  const rated = (card, ticks) => {
    const row = make("div", "", { className: "ratings" });
    row.append(make("span", "How well did you know it? "));
    for (const rating of ["again", "hard", "good", "easy"]) {
      const button = make("button", rating, { type: "button" });
      button.onclick = () => {
        tell({ id: card.dataset.card, rating });
        const next = card.nextElementSibling;
        card.hidden = true;
        if (next?.dataset.card) {
          next.hidden = false;
          next.querySelector("textarea").focus();
        } else card.after(make("p", "That was the last card for today."));
      };
      row.append(button);
    }
    ticks.append(row);
  };
  const make = (tag, text, fields) =>
    Object.assign(document.createElement(tag), { textContent: text, ...fields });

  // A page that was exported is named after its notebook, and has the cell's id in it.
  const follow = (event) => {
    const cell = document.getElementById(event.currentTarget.hash.slice(1));
    if (!cell) return;
    event.preventDefault();
    event.stopPropagation();
    cell.tabIndex = -1;
    cell.focus({ preventScroll: true });
    cell.scrollIntoView();
  };

  const checklist = (points, kept, save) => {
    const list = make("ul", "");
    const count = make("p", "", { className: "count" });
    count.setAttribute("role", "status");
    const say = () => {
      const had = list.querySelectorAll(":checked").length;
      count.textContent = `You had ${had} of ${points.length}.`;
    };
    for (const point of points) {
      const box = make("input", "", { type: "checkbox" });
      box.checked = kept.ticked.includes(point);
      box.onchange = () => {
        kept.ticked = kept.ticked.filter((other) => other !== point);
        if (box.checked) kept.ticked.push(point);
        save();
        say();
      };
      const label = make("label", "");
      label.append(box, make("span", point));
      const item = make("li", "");
      item.append(label);
      list.append(item);
    }
    say();
    const ticks = make("div", "", { className: "ticks", hidden: true });
    ticks.append(make("p", "Tick what your answer had."), list, count);
    return ticks;
  };

  const upgrade = (card) => {
    const id = card.dataset.card;
    const kept = recall(card);
    const save = () => remember(id, { ...kept, of: points.length });
    const details = card.querySelector("details");
    const points = Array.from(details.querySelectorAll("li"), (li) => li.textContent);
    const link = details.querySelector("a");
    link.onclick = follow;

    const field = make("textarea", "", { value: kept.answer });
    const label = make("label", "Your answer");
    label.append(field);
    // JupyterLab refuses line breaks to whatever is in a cell and hears of them.
    const unheard = (event) => event.stopPropagation();
    label.addEventListener("beforeinput", unheard, { capture: true });
    const button = make("button", "Compare with the key points", { type: "button" });
    const hint = make("span", "Write your answer first.", { className: "hint" });
    const ticks = checklist(points, kept, save);
    ticks.append(link.parentNode);
    const settle = () => {
      const empty = !field.value.trim();
      button.disabled = empty && ticks.hidden;
      hint.hidden = !button.disabled;
      button.setAttribute("aria-expanded", String(!ticks.hidden));
      button.textContent = ticks.hidden
        ? "Compare with the key points"
        : "Hide the key points";
    };
    field.oninput = () => {
      kept.answer = field.value;
      save();
      settle();
    };
    button.onclick = () => {
      ticks.hidden = !ticks.hidden;
      settle();
    };
    settle();
    details.replaceWith(label, button, hint, ticks);
    if ("review" in card.parentNode.dataset) {
      field.value = "";
      rated(card, ticks);
      card.hidden = card.previousElementSibling?.dataset.card !== undefined;
    }
  };

  for (const card of document.querySelectorAll(".distlab-cards [data-card]")) {
    if ("ready" in card.dataset) continue;
    card.dataset.ready = "";
    upgrade(card);
  }
})();
