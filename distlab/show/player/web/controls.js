// Play, step, scrub, speed, views and keys, for one film or for two in step.

const SPEEDS = [0.25, 0.5, 1, 2, 4], STOP_MS = 1400;

function mount(root, films, differs, opens) {
  const find = name => root.querySelector(name), all = name => [...root.querySelectorAll(name)];
  const count = Math.max(...films.map(film => film.frames.length)) - 1;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const clocked = films[0].held.length > 0, pace = Math.max(1, count / 40);  // a schedule plays evenly, within a minute
  const scrub = find(".scrub input"), play = find(".play");
  const views = { graph: [], lanes: [], space: [], logs: [] };
  let p = 0, playing = false, speed = 2, zoom = 1, view = films[0].opens, last = 0, held = false;

  films.forEach((film, k) => {
    const box = film.box = all(".run")[k], part = name => box.querySelector(name);
    const draws = { graph: svg => graph(film, svg, part(".panel")), lanes: svg => lanes(film, svg), space: svg => (film.spacetime ? spacetime : space)(film, svg), logs: svg => logs(film, svg) };
    for (const [name, svg] of [["graph", part(".graph>svg")], ["lanes", part(".lanes")], ["space", part(".space")], ["logs", part(".logs")]])
      if (svg) views[name].push([draws[name](svg), svg, ...name === "graph" && part(".panel") ? [part(".panel")] : []]);
    box.addEventListener("moment", event => seek(position(film, event.detail)));
  });

  // A moment is a share of the run's time, from 0 to 1; a position counts stops.
  function moment(film, at) {
    const k = Math.min(Math.floor(at), film.frames.length - 1), next = film.frames[k + 1];
    return film.frames[k].at + (next ? (next.at - film.frames[k].at) * (at - k) : 0);
  }
  function position(film, time) {
    const k = film.frames.findIndex(frame => frame.at >= time);
    if (k <= 0) return k < 0 ? film.frames.length - 1 : 0;
    const before = film.frames[k - 1].at, after = film.frames[k].at;
    return after > before ? k - 1 + (time - before) / (after - before) : k;
  }

  function draw() {
    films.forEach((film, k) => {
      const last = film.frames.length - 1, over = p > last, at = Math.min(p, last), frame = film.frames[Math.ceil(at)];
      const [title, text] = film.box.querySelectorAll(".said b, .said span");
      const words = over ? [`It has ended after step ${last}`, ""] : [frame.t, frame.x];
      if (title.textContent !== words[0]) title.textContent = words[0];
      if (text.textContent !== words[1]) text.textContent = words[1];
      views[view][k][0](at, moment(film, at), zoom, over);
    });
    if (!held) scrub.value = p;
    const words = films[0].frames[Math.min(Math.ceil(p), films[0].frames.length - 1)].t;
    scrub.setAttribute("aria-valuetext", `${Math.ceil(p)} of ${count}: ${words}`);
    find(".count").textContent = `${Math.ceil(p)} of ${count}`;
    root.dataset.position = p;
  }

  function tick(time) {
    if (!playing || !root.isConnected) { playing = false; return; }
    const passed = Math.min(100, Math.max(0, time - last)) / STOP_MS * SPEEDS[speed], before = p;
    if (calm.matches) {
      if (time - last >= STOP_MS / SPEEDS[speed]) { p = Math.floor(p) + 1; last = time; draw(); }
    } else { last = time; p = clocked ? position(films[0], moment(films[0], p) + passed * pace / count) : p + passed; }
    if (differs > 0 && before < differs && p >= differs) { p = differs; set(false); return; }
    if (p >= count) { p = count; set(false); return; }
    if (!calm.matches) draw();
    requestAnimationFrame(tick);
  }
  function set(on) {
    if (on && p >= count) p = 0;
    playing = on && count > 0;
    play.querySelector("path").setAttribute("d", playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 2v12l9-6z");
    play.title = playing ? "pause" : "play";
    play.setAttribute("aria-label", play.title);
    if (playing) { last = performance.now(); requestAnimationFrame(tick); }
    draw();
  }
  function seek(to) { p = Math.min(count, Math.max(0, to)); set(false); }
  const jumps = [...new Set([...films.flatMap(film => film.events.map(([at]) => at)), differs])].filter(at => at > 0).sort((a, b) => a - b);
  const jump = () => seek(jumps.find(at => at > p + 1e-9) ?? jumps[0] ?? p);
  const step = by => seek(by > 0 ? Math.floor(p + 1e-9) + 1 : Math.ceil(p - 1e-9) - 1);
  function faster(by) {
    speed = Math.min(SPEEDS.length - 1, Math.max(0, speed + by));
    find(".speed").textContent = `${SPEEDS[speed]}×`;
  }
  function look(name) {
    if (!views[name].length) return;
    view = root.dataset.view = name;
    for (const button of all(".views button")) button.setAttribute("aria-selected", button.dataset.view === name);
    for (const key in views) for (const [, ...svgs] of views[key]) for (const svg of svgs) svg.classList.toggle("off", key !== name);
    find(".zoom").classList.toggle("off", name !== "lanes");
    draw();
  }
  let fitted = 0;
  function fit() {
    if (fitted === root.clientWidth || !root.clientWidth) return;
    fitted = root.clientWidth;
    for (const key in views) views[key].forEach(([drawn], k) => drawn.fit(films[k].box.querySelector(".graph").offsetHeight));
    reserve();
    draw();
  }
  function reserve() {  // as much room for words as the longest need: nothing below them moves
    const parts = films.map(film => [...film.box.querySelectorAll(".said b, .said span")]);
    const needed = films.map((film, k) => ["t", "x"].map((key, part) => {
      const box = parts[k][part], words = [...new Set(film.frames.map(frame => frame[key]))].sort((a, b) => b.length - a.length);
      return Math.max(...words.slice(0, 6).map(each => { box.textContent = each; return box.offsetHeight; }));
    }));
    for (const film of films) film.box.querySelector(".said").style.minHeight = `${Math.max(...needed.map(([title, text]) => title + text))}px`;
  }
  function closer(by) { zoom = Math.min(4096, Math.max(1, zoom * by)); draw(); }

  const actions = {
    start: () => seek(0), back: () => step(-1), play: () => set(!playing), next: () => step(1), end: () => seek(count),
    speed: () => speed < SPEEDS.length - 1 ? faster(1) : faster(-9), differs: () => seek(differs), in: () => closer(2), out: () => closer(0.5),
  };
  const keys = {
    " ": actions.play, k: actions.play, ArrowLeft: actions.back, ArrowRight: actions.next, Home: actions.start, End: actions.end,
    ArrowUp: () => faster(1), ArrowDown: () => faster(-1), "+": actions.in, "=": actions.in, "-": actions.out, n: jump, d: () => differs > 0 && seek(differs),
    0: () => closer(1e-9), Escape: () => (root.closest(".jp-Notebook") ?? document.activeElement).focus(), 1: () => look("graph"), 2: () => look("lanes"), 3: () => look("space"), 4: () => look("logs"),
  };
  root.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.at) seek(Number(button.dataset.at));
    else if (button.dataset.view) look(button.dataset.view); else actions[button.dataset.do]?.();
  });
  root.addEventListener("keydown", event => {
    event.stopPropagation();  // the notebook has its own plans for most keys
    passOnSave(event);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.closest("button")) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  scrub.addEventListener("input", () => { held = true; seek(Number(scrub.value)); held = false; });

  function ruler() {
    const box = find(".scrub"), wide = box.clientWidth - 16, frames = films[0].frames;
    if (wide < 0) return;
    const free = { name: 0, number: 0 }, every = Math.ceil(frames.length / 300);
    const parts = frames.map(frame => frame.s.match(/^(.*?),? ?(\d*\.?\d+)?$/)), place = k => 8 + wide * k / Math.max(1, count);
    const phases = [], phaseOf = parts.map(([, name, number], k) => {  // [name, its last number, whether they count up]
      if (!k || name && name !== phases.at(-1)[0]) phases.push([name, -1, true]);
      const phase = phases.at(-1);
      if (number) [phase[1], phase[2]] = [Number(number), phase[2] && Number(number) > phase[1]];
      return phase;
    });
    const marks = frames.flatMap((frame, k) => {  // above, where a phase begins; below, its steps, if they count up
      const [, name, number = ""] = parts[k], at = place(k), begins = phaseOf[k] !== phaseOf[k - 1];
      const words = k ? [begins ? name : "", phaseOf[k][2] ? number : ""] : ["", "0"];
      return [["name", words[0], 6 * words[0].length], ["number", words[1], 7 * words[1].length]].flatMap(([row, words, long]) => {
        const from = Math.max(0, Math.min(row === "name" ? at - 4 : at - long / 2, 16 + wide - long));
        if (!words || from < free[row] || row === "number" && k % every) return [];
        free[row] = from + long + 8;
        const mark = document.createElement("i");
        mark.className = row;
        mark.textContent = words;
        mark.style.left = `${from}px`;
        return [mark];
      });
    });
    const events = films.flatMap(film => film.events).map(([at, words, bad]) => {
      const mark = document.createElement("button");
      mark.className = bad ? "event bad" : "event";
      mark.dataset.at = at;
      mark.title = mark.ariaLabel = words;
      mark.style.left = `${place(at) - 5}px`;
      return mark;
    });
    box.querySelectorAll("i, button").forEach(mark => mark.remove());
    box.prepend(...marks, ...events);
  }
  new ResizeObserver(ruler).observe(find(".scrub"));
  new ResizeObserver(fit).observe(find(".runs"));
  scrub.max = count;
  for (const part of all("[hidden]")) part.hidden = false;
  find(".strip")?.remove();
  fit();
  look(films[0].opens);
  seek(opens);
  root.dataset.ready = Math.round(performance.now());
}
