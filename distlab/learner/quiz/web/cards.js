const RATINGS = ["again", "hard", "good", "easy"];
const tellCard = (value) => tell({ to: "cards", value });
const make = (tag, text, fields) =>
  Object.assign(document.createElement(tag), { textContent: text, ...fields });
const onDay = (time) =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long" });

// What a card has had: in this browser, or in the file of whoever ran the notebook. What
// came in since then the kernel has written into an output of its own, above the cards.
const later = (card) => {
  const above = card.closest(".jp-OutputArea")?.querySelector(".distlab-kept");
  return above && JSON.parse(above.dataset.kept)[card.dataset.card];
};
const recall = (card) => {
  const interview = card.closest("[data-interview]");
  let kept = stored("distlab.card." + card.dataset.card);
  try {
    kept = Object(kept ?? later(card) ?? JSON.parse(card.dataset.kept));
    if (interview) kept = Object(heldIn(interview)?.answers[card.dataset.card]);
  } catch {
    kept = {};
  }
  const list = (value) => (Array.isArray(value) ? value : []);
  const { answer, fsrs } = kept;
  const all = [...list(kept.ratings), [kept.rating, Date.parse(fsrs?.last_review)]];
  const ratings = all.filter((each) => RATINGS.includes(each?.[0]) && each[1] > 0);
  const text = typeof answer === "string" ? answer : "";
  return { answer: text, ticked: list(kept.ticked), ratings };
};
const waiting = {};
const remember = (card, change) => {
  const interview = card.closest("[data-interview]");
  if (interview) return interview.keep(card, change);
  const id = card.dataset.card;
  const name = "distlab.card." + id;
  store(name, { ...Object(stored(name)), ...recall(card), ...change });
  if ("ratings" in change) return;
  clearTimeout(waiting[id]);
  const say = () => tellCard({ id, ...change }) || isPage || card.unkept();
  waiting[id] = setTimeout(say, 400);
};
// The cards of a level, or of all, whose topic has these words, or else their texts.
const chosen = (cards, { lesson, level, topic }) => {
  const plain = (text) => text.toLowerCase().replace(/[-_]/g, " ").trim();
  const fit = cards.filter(
    ({ dataset }) =>
      (!lesson || dataset.lesson === lesson) && (!level || dataset.level === level),
  );
  const about = (...texts) => plain(texts.join(" ")).includes(plain(topic));
  const found = fit.filter(({ dataset }) => about(dataset.lesson, dataset.topic));
  if (found.length) return found;
  const words = (card) => [...card.querySelectorAll(".question, .said, li")];
  return fit.filter((card) => about(...words(card).map((each) => each.textContent)));
};
const UNKEPT = "Not kept. Run this cell first.";

// One card at a time: how well it was known decides when it comes back.
const turn = (deck, queue) => {
  deck.queue = queue;
  const cards = deck.querySelectorAll("[data-card]");
  for (const card of cards) card.hidden = card !== queue[0];
  queue[0]?.beginAgain();
  let end = deck.querySelector(".end");
  if (!end) {
    end = make("p", "", { className: "end", tabIndex: -1 });
    [...cards].at(-1)?.after(end);
  }
  end.hidden = !cards.length || queue.length > 0;
  end.textContent = "That was the last card for today.";
  return queue[0]?.querySelector("textarea") ?? end;
};
const ratingsOf = (card, deck) => {
  const row = make("div", "", { className: "row" });
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "How well did you know it?");
  const said = make("span", "", { className: "note" });
  said.setAttribute("role", "status");
  const [last, time] = recall(card).ratings.at(-1) ?? [];
  if (last) said.textContent = `You rated it ${last} on ${onDay(time)}.`;
  row.append(make("span", "How well did you know it?"));
  RATINGS.forEach((rating, at) => {
    const button = make("button", rating, { type: "button", title: `key ${at + 1}` });
    button.setAttribute("aria-keyshortcuts", at + 1);
    button.onclick = () => {
      const told = tellCard({ id: card.dataset.card, rating });
      remember(card, { ratings: [...recall(card).ratings, [rating, Date.now()]] });
      if (!told && !isPage) return said.textContent = UNKEPT;
      if (!deck.queue) return said.textContent = `You rated it ${rating} today.`;
      turn(deck, deck.queue.slice(1)).focus();
      deck.rated?.(card);
    };
    row.append(button);
  });
  if (!("review" in deck.dataset)) row.append(said);
  return row;
};

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
  const count = make("p", "");
  count.setAttribute("role", "status");
  const say = () => {
    const had = list.querySelectorAll(":checked").length;
    count.textContent = `You had ${had} of ${points.length}.`;
  };
  for (const { point, html } of points) {
    const box = make("input", "", { type: "checkbox" });
    box.checked = kept.ticked.includes(point);
    box.onchange = () => {
      kept.ticked = kept.ticked.filter((other) => other !== point);
      if (box.checked) kept.ticked.push(point);
      save();
      say();
    };
    const label = make("label", "");
    label.append(box, make("span", "", { innerHTML: html }));
    const item = make("li", "");
    item.append(label);
    list.append(item);
  }
  say();
  const ticks = make("div", "", { className: "ticks", hidden: true });
  ticks.append(make("p", "Tick what your answer had."), list, count);
  ticks.clear = () => {
    kept.ticked = [];
    for (const box of list.querySelectorAll("input")) box.checked = false;
    say();
  };
  return ticks;
};

const upgradeCard = (card) => {
  const deck = card.closest(".distlab-cards");
  const kept = recall(card);
  const save = () =>
    remember(card, { answer: kept.answer, ticked: kept.ticked, of: points.length });
  const details = card.querySelector("details");
  const points = Array.from(details.querySelectorAll("li"), (li) => ({
    point: li.dataset.point,
    html: li.innerHTML,
  }));
  const link = details.querySelector("a");
  const said = details.querySelectorAll(".said");
  const next = details.querySelectorAll(".next");
  link.onclick = follow;
  card.setAttribute("role", "group");
  card.setAttribute("aria-label", card.querySelector(".question").textContent.replaceAll("$", ""));

  const field = make("textarea", "", { value: kept.answer });
  const label = make("label", "Your answer", { className: "answer" });
  label.append(field);
  const button = make("button", "Compare with the answer and key points", { type: "button" });
  const hint = make("span", "Write your answer first.", { className: "hint" });
  const ticks = checklist(points, kept, save);
  ticks.prepend(...said);
  const isInterview = "interview" in deck.dataset;
  ticks.append(link.parentNode, ...next);
  if (!isInterview) ticks.append(ratingsOf(card, deck));
  const settle = () => {
    const empty = !isInterview && !field.value.trim();
    button.disabled = empty && ticks.hidden;
    hint.hidden = !button.disabled;
    button.setAttribute("aria-expanded", String(!ticks.hidden));
    button.textContent = ticks.hidden
      ? "Compare with the answer and key points"
      : "Hide the answer and key points";
  };
  field.oninput = () => {
    kept.answer = field.value;
    save();
    settle();
  };
  button.onclick = () => {
    ticks.hidden = !ticks.hidden;
    settle();
    if (!ticks.hidden) card.compared?.();
  };
  card.unkept = () => Object.assign(hint, { textContent: UNKEPT, hidden: false });
  card.beginAgain = () => {
    field.value = kept.answer = "";
    ticks.hidden = true;
    ticks.clear();
    settle();
  };
  card.addEventListener("keydown", (event) => {
    const typing = isInterview || event.target === field || ticks.hidden;
    const rating = !typing && Number(event.key);
    if (RATINGS[rating - 1]) ticks.querySelectorAll("button")[rating - 1].click();
  });
  settle();
  details.replaceWith(label, button, hint, ticks);
};

forEach(".distlab-cards [data-card]", upgradeCard);
forEach(".distlab-cards", (deck) => {
  unheard(deck);
  if ("review" in deck.dataset) turn(deck, [...deck.querySelectorAll("[data-card]")]);
});
