// The page of all cards: those that are due, longest first, then a day's new ones.
const NEW_CARDS = 10;
const dueAt = (card) => {
  const again = (state, [rating, time]) =>
    reviewed(state, 1 + RATINGS.indexOf(rating), time);
  return recall(card).ratings.reduce(again, null)?.due;
};
const isToday = (time) => new Date(time).toDateString() === new Date().toDateString();
const newToday = (deck) =>
  [...deck.querySelectorAll("[data-card]")]
    .map((card) => Math.min(...recall(card).ratings.map(([, time]) => time)))
    .filter(isToday).length;
const atTime = (time) => {
  const clock = { hour: "2-digit", minute: "2-digit" };
  return `${onDay(time)}, ${new Date(time).toLocaleTimeString("en-GB", clock)}`;
};

forEach("form.choose", (form) => {
  const deck = form.closest(".distlab-cards");
  const said = deck.querySelector(".today");
  const start = () => {
    const { lesson, level, topic } = form.elements;
    const wanted = { lesson: lesson.value, level: level.value, topic: topic.value };
    const cards = chosen([...deck.querySelectorAll("[data-card]")], wanted).map((card) => [
      dueAt(card),
      card,
    ]);
    const old = cards.filter(([due]) => due <= Date.now()).sort((a, b) => a[0] - b[0]);
    const fresh = cards.filter(([due]) => due === undefined).slice(0, Math.max(0, NEW_CARDS - newToday(deck)));
    const [seen, unseen] = [old.length, fresh.length];
    turn(deck, [...old, ...fresh].map(([, card]) => card));
    said.textContent = seen + unseen
      ? `Today: ${seen} due, ${unseen} new, of ${cards.length} cards.`
      : cards.length
        ? `None of ${cards.length} cards is due today.`
        : "No card is about this topic; the field offers those that there are.";
    if (!(seen + unseen)) tellNext(cards);
  };
  const tellNext = (cards) => {
    const end = deck.querySelector(".end");
    const next = cards.map(([due]) => due).filter(Boolean).sort((a, b) => a - b)[0];
    end.hidden = !next;
    end.textContent = `The next card comes back on ${atTime(next)}.`;
  };
  deck.rated = (card) => {
    const left = deck.queue.length;
    said.textContent =
      `Comes back on ${atTime(dueAt(card))}.` + (left ? ` ${left} left today.` : "");
  };
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = start;
  form.hidden = false;
  start();
});
