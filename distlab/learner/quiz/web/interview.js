// A mock interview: one question after another against the clock, then what to read.
const minutesOf = (s) => `${Math.floor(s / 60)}:${`${Math.floor(s) % 60}`.padStart(2, "0")}`;
const numberOf = (text) => {
  const parts = text.replaceAll("−", "-").replace(/(\d),(?=\d{3}\b)/g, "$1").replace(",", ".").split("/");
  const numbers = parts.map((part) => (part.trim() ? Number(part) : NaN));
  return numbers.length > 2 ? NaN : numbers.reduce((above, below) => above / below);
};
// Declared as functions, since cards.js, which stands above, calls them.
function interviews() {
  return [stored("distlab.interviews")].flat().filter((each) => each?.answers);
}
function heldIn(deck) {
  if (deck.held !== undefined) return deck.held;
  const above = deck.closest(".jp-OutputArea")?.querySelector(".distlab-kept");
  deck.held = JSON.parse(above?.dataset.kept ?? deck.dataset.interview);
  const started = deck.held?.started ?? interviews().filter((each) => !each.ended).at(-1)?.started;
  deck.held = interviews().find((each) => each.started === started) ?? deck.held;
  return deck.held;
}

forEach("form.interview", (form) => {
  const deck = form.closest(".distlab-cards");
  const clock = deck.querySelector(".clock");
  const report = deck.querySelector(".report");
  const byId = (id) => deck.querySelector(`[data-card="${CSS.escape(id)}"]`);
  const entry = (id) => (deck.held.answers[id] ??= {});
  const spent = () =>
    Object.values(deck.held.answers).reduce((sum, { seconds = 0 }) => sum + seconds, 0);
  const open = () => deck.held.questions.filter((id) => byId(id) && !entry(id).done);
  let shown = null;
  let since = 0;
  const changes = {};
  let waits = 0;
  const send = () => {
    for (const [question, change] of Object.entries(changes)) {
      delete changes[question];
      const value = { started: deck.held.started, question, ...change };
      if (!tell({ to: "interview", value }) && !isPage) shown?.unkept();
    }
  };
  const save = (question, change) => {
    const others = interviews().filter(({ started }) => started !== deck.held.started);
    store("distlab.interviews", [...others, deck.held]);
    Object.assign((changes[question] ??= {}), change);
    clearTimeout(waits);
    waits = setTimeout(send, 400);
  };
  deck.keep = (card, change) => {
    Object.assign(entry(card.dataset.card), change);
    save(card.dataset.card, change);
  };

  // The clock runs while a question is on the page, and stops at the comparison.
  const tick = () => {
    if (!shown?.isConnected) return;
    const kept = entry(shown.dataset.card);
    if (!kept.answered) {
      const now = performance.now();
      deck.keep(shown, { seconds: (kept.seconds ?? 0) + (now - since) / 1000 });
      since = now;
    }
    const at = deck.held.questions.indexOf(shown.dataset.card) + 1;
    const left = Math.max(0, 60 * deck.held.minutes - spent());
    clock.textContent =
      `Question ${at} of ${deck.held.questions.length} · ` +
      `${minutesOf(kept.seconds ?? 0)} of ${shown.dataset.minutes}:00 · ${minutesOf(left)} left`;
  };
  setInterval(tick, 1000);

  const go = () => {
    form.hidden = true;
    const first = open()[0];
    const time = spent() < 60 * deck.held.minutes || (first && entry(first).answered);
    shown = (time && first && byId(first)) || null;
    for (const card of deck.querySelectorAll("[data-card]")) card.hidden = card !== shown;
    if (!shown) return finish();
    for (const next of shown.querySelectorAll(".next"))
      next.hidden = next.dataset.next.split(" ").some((id) => deck.held.questions.includes(id));
    since = performance.now();
    clock.hidden = false;
    tick();
    if (entry(shown.dataset.card).answered) shown.querySelector("[aria-expanded=false]")?.click();
    else shown.querySelector("textarea").focus();
  };

  const finish = () => {
    deck.held.ended = true;
    save("", {});
    clock.hidden = true;
    const done = deck.held.questions.filter((id) => entry(id).done);
    const points = (id) => [entry(id).ticked?.length ?? 0, entry(id).of];
    const sum = (at) => done.reduce((all, id) => all + points(id)[at], 0);
    const lines = [
      `You took ${minutesOf(spent())} of ${deck.held.minutes} minutes, and had ` +
        `${sum(0)} of ${sum(1)} key points in ${done.length} questions.`,
    ];
    for (const id of done)
      if (byId(id).dataset.value) lines.push(verdict(byId(id)));
    const left = deck.held.questions.length - done.length;
    if (left) lines.push(`The time was over before ${left} of ${left + done.length} questions.`);
    report.replaceChildren(make("p", lines.join(" ")));
    const share = (id) => points(id)[0] / points(id)[1];
    const again = done.filter((id) => share(id) < 1).sort((a, b) => share(a) - share(b));
    if (again.length) report.append(make("p", "Read again, fewest points first:"));
    const list = make("ul", "");
    for (const id of again.slice(0, 6)) {
      const { topic, lesson } = byId(id).dataset;
      const there = byId(id).querySelector(".ticks a");
      const link = there.cloneNode(true);
      // JupyterLab opens a notebook by its own listener, which the copy lacks.
      if (!isPage)
        link.onclick = (event) => {
          event.preventDefault();
          there.click();
        };
      link.textContent = `${topic}, lesson ${lesson.slice(0, 2)}`;
      const item = make("li", `${points(id).join(" of ")}: `);
      item.append(link);
      list.append(item);
    }
    report.append(list);
    deck.earlier?.(report);
    report.hidden = false;
    report.focus();
  };

  const verdict = (card) => {
    const { number } = entry(card.dataset.card);
    const value = Number(card.dataset.value);
    const right = Math.abs(number - value) <= 0.1 * Math.abs(value);
    return right ? "Your number is right." : "Your number is not within a tenth.";
  };
  const fieldFor = (card) => {
    const label = make("label", `Your number, in ${card.dataset.unit} `, { className: "number" });
    const field = make("input", "", { type: "text", inputMode: "decimal" });
    const said = make("p", "", { className: "said" });
    field.oninput = () => {
      const number = numberOf(field.value);
      field.setCustomValidity(isFinite(number) || !field.value ? "" : "Not a number.");
      deck.keep(card, { number: isFinite(number) ? number : null });
    };
    label.append(field);
    card.querySelector("label.answer").after(label);
    card.querySelector(".ticks").prepend(said);
    field.value = heldIn(deck)?.answers[card.dataset.card]?.number ?? "";
    return said;
  };
  for (const card of deck.querySelectorAll("[data-card]")) {
    const ticks = card.querySelector(".ticks");
    const number = card.dataset.value && fieldFor(card);
    const next = make("button", "Next question", { type: "button" });
    next.onclick = () => {
      deck.keep(card, { done: true, of: ticks.querySelectorAll("li").length });
      go();
    };
    ticks.append(next);
    card.hidden = true;
    card.compared = () => {
      tick();
      deck.keep(card, { answered: true });
      if (number) number.textContent = verdict(card);
    };
    const copy = card.querySelector("button.copy");
    if (copy)
      copy.onclick = async () => {
        await navigator.clipboard.writeText(card.querySelector("pre").textContent);
        copy.textContent = "Copied";
      };
  }
  form.onsubmit = (event) => {
    event.preventDefault();
    event.stopPropagation();
    if (!isPage && !tell({ to: "" })) form.querySelector(".note").textContent = UNKEPT;
    else if (deck.begin?.() !== false) go();
  };
});
