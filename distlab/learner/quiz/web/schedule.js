// When a card comes back. What is remembered is FSRS's to say; until the first whole
// day a card goes through steps of minutes, which are those of py-fsrs.
const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const memories = new FSRS.FSRSAlgorithm({});

// state: null, or what this returned; rating: 1 to 4; now: milliseconds.
const reviewed = (state, rating, now) => {
  const days = state ? Math.max(0, Math.floor((now - state.last) / DAY)) : 0;
  const memory = memories.next_state(state?.memory ?? null, days, rating);
  let { steps, step } = state ?? { steps: [1, 10], step: 0 };
  if (!steps && rating === 1) steps = [10];
  let minutes = 0;
  if (steps && rating === 1) minutes = steps[(step = 0)];
  else if (steps && rating === 2)
    minutes = step ? steps[step] : steps.length > 1 ? (steps[0] + steps[1]) / 2 : 15;
  else if (steps && rating === 3) minutes = steps[++step] ?? 0;
  const wait = minutes * MINUTE || memories.next_interval(memory.stability, 0) * DAY;
  return { memory, steps: minutes ? steps : null, step, last: now, due: now + wait };
};
