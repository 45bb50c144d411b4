// The draw of an interview, as in draw.py: on a page there is no kernel.
const RANKS = ["mid", "senior", "principal"];
const shuffled = (list) =>
  list.map((each) => [Math.random(), each]).sort((a, b) => a[0] - b[0]).map(([, each]) => each);
const drawn = (deck, level, minutes, topic) => {
  const every = [...deck.querySelectorAll("[data-card]")];
  const of = (kind) => every.filter(({ dataset }) => dataset.kind === kind);
  const cards = of("card");
  const most = RANKS.indexOf(level) + 1;
  const fits = ({ dataset }) => RANKS.indexOf(dataset.level) <= most;
  const wanted = chosen(cards, { level, topic });
  if (!wanted.length) return null;
  const past = interviews().flatMap(({ answers }) => Object.keys(answers));
  const age = ({ dataset }) => past.lastIndexOf(dataset.card);
  const numbers = wanted.map(({ dataset }) => Number(dataset.lesson.slice(0, 2)));
  const far = ({ dataset }) =>
    topic && Math.min(...numbers.map((n) => Math.abs(n - Number(dataset.lesson.slice(0, 2)))));
  const nearest = (kind) =>
    shuffled(of(kind).filter(fits)).sort((a, b) => far(a) - far(b) || age(a) - age(b))[0];
  const extras = [minutes >= 15 && nearest("whiteboard"), minutes >= 30 && nearest("live-coding")];
  const last = extras.filter(Boolean);
  const takes = (list) => list.reduce((sum, { dataset }) => sum + Number(dataset.minutes), 0);
  const chain = (card) => {
    const after = shuffled(cards.filter(({ dataset }) => dataset.follows === card.dataset.card));
    return [card, ...(after.length ? chain(after[0]) : [])];
  };
  const chains = shuffled(cards.filter(({ dataset }) => !dataset.follows))
    .map((card) => chain(card).filter(fits))
    .filter((each) => each.some((card) => wanted.includes(card)))
    .sort((a, b) => Math.max(...a.map(age)) - Math.max(...b.map(age)));
  const found = [];
  const left = () => minutes - takes(last) - takes(found);
  const fit = (some) => {
    const rest = [];
    for (const each of some)
      if (takes(each) > left()) rest.push(each);
      else found.push(...each);
    for (const each of rest)
      for (const card of each) {
        if (takes([card]) > left()) break;
        found.push(card);
      }
  };
  const isFresh = (each) => each.every((card) => age(card) < 0);
  fit(chains.filter(isFresh));
  fit(chains.filter((each) => !isFresh(each)));
  return [...found, ...last].map(({ dataset }) => dataset.card);
};

forEach("form.choose.interview-choice", (choice) => {
  const deck = choice.closest(".distlab-cards");
  const form = deck.querySelector("form.interview");
  const said = deck.querySelector(".today");
  const { level, minutes, topic } = choice.elements;
  choice.hidden = false;
  if (heldIn(deck)) {
    form.querySelector("button").textContent = "Go on with the last interview";
    const another = make("button", "Begin another", { type: "button" });
    another.onclick = () => {
      deck.held = null;
      for (const card of deck.querySelectorAll("[data-card]")) card.beginAgain();
      for (const field of deck.querySelectorAll(".number input")) field.value = "";
      form.requestSubmit();
    };
    form.append(another);
  }
  choice.onsubmit = (event) => event.preventDefault();
  deck.begin = () => {
    if (deck.held) return choice.hidden = true;
    const questions = drawn(deck, level.value, Number(minutes.value), topic.value);
    said.textContent = questions ? "" : "No card of this level is about this topic; the field offers those that there are.";
    if (!questions) return false;
    deck.held = {
      started: new Date().toISOString(), level: level.value,
      minutes: Number(minutes.value), topic: topic.value, questions, answers: {}, ended: false,
    };
    choice.hidden = true;
  };
  deck.earlier = (report) => {
    const list = make("ul", "");
    for (const { started, level, answers } of interviews()) {
      const done = Object.values(answers).filter((each) => each.done);
      const had = done.reduce((sum, each) => sum + (each.ticked?.length ?? 0), 0);
      const of = done.reduce((sum, each) => sum + each.of, 0);
      list.append(make("li", `${onDay(started)}, ${level}: ${had} of ${of} key points`));
    }
    const another = make("button", "Another interview", { type: "button" });
    another.onclick = () => location.reload();
    report.append(make("p", "Your interviews in this browser:"), list, another);
  };
});
