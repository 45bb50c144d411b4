// Play, step, scrub, speed, views and keys, for one film or for two in step.

const SPEEDS = [0.25, 0.5, 1, 2, 4], STOP_MS = 1400;

function mount(root, films, differs) {
  const find = name => root.querySelector(name), all = name => [...root.querySelectorAll(name)];
  const count = Math.max(...films.map(film => film.frames.length)) - 1;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const clocked = films[0].held.length > 0, pace = Math.max(1, count / 40);  // a schedule plays evenly, within a minute
  const scrub = find(".scrub input"), play = find(".play");
  const views = { graph: [], lanes: [], space: [] };
  let p = 0, playing = false, speed = 2, zoom = 1, view = "graph", last = 0, held = false;

  films.forEach((film, k) => {
    const box = all(".film")[k], svgs = box.querySelectorAll("svg");
    film.box = box;
    views.graph.push([graph(film, svgs[0], svgs[3]), svgs[0], svgs[3]]);
    views.lanes.push([lanes(film, svgs[1]), svgs[1]]);
    views.space.push([(film.weave ? weave : space)(film, svgs[2]), svgs[2]]);
    svgs[1].addEventListener("moment", event => seek(position(film, event.detail)));
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
  const step = by => seek(by > 0 ? Math.floor(p + 1e-9) + 1 : Math.ceil(p - 1e-9) - 1);
  function faster(by) {
    speed = Math.min(SPEEDS.length - 1, Math.max(0, speed + by));
    find(".speed").textContent = `${SPEEDS[speed]}×`;
  }
  function look(name) {
    if (!find(`.views [data-view=${name}]`)) return;
    view = root.dataset.view = name;
    for (const button of all(".views button")) button.setAttribute("aria-selected", button.dataset.view === name);
    for (const key in views) for (const [, ...svgs] of views[key]) for (const svg of svgs) svg?.classList.toggle("off", key !== name);
    find(".zoom").classList.toggle("off", name !== "lanes");
    fit();
  }
  function fit() {
    for (const [drawn] of views[view]) drawn.fit();
    draw();
  }
  function closer(by) { zoom = Math.min(4096, Math.max(1, zoom * by)); draw(); }

  const actions = {
    start: () => seek(0), back: () => step(-1), play: () => set(!playing), next: () => step(1), end: () => seek(count),
    speed: () => speed < SPEEDS.length - 1 ? faster(1) : faster(-9), differs: () => seek(differs), in: () => closer(2), out: () => closer(0.5),
  };
  const keys = {
    " ": actions.play, k: actions.play, ArrowLeft: actions.back, ArrowRight: actions.next, Home: actions.start, End: actions.end,
    ArrowUp: () => faster(1), ArrowDown: () => faster(-1), "+": actions.in, "=": actions.in, "-": actions.out, d: () => differs > 0 && seek(differs),
    0: () => closer(1e-9), Escape: () => (root.closest(".jp-Notebook") ?? document.activeElement).focus(), 1: () => look("graph"), 2: () => look("lanes"), 3: () => look("space"),
  };
  root.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.view) look(button.dataset.view); else actions[button.dataset.do]?.();
  });
  root.addEventListener("keydown", event => {
    event.stopPropagation();  // the notebook has its own plans for most keys
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.closest("button")) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  scrub.addEventListener("input", () => { held = true; seek(Number(scrub.value)); held = false; });

  function ruler() {
    const box = find(".scrub"), wide = box.clientWidth - 16, frames = films[0].frames;
    if (wide < 0) return;
    const taken = [], every = Math.ceil(frames.length / 300);
    const names = frames.map((frame, k) => k).filter(k => k % every === 0 || frames[k].s.length > 3).sort((a, b) => (frames[b].s.length > 3) - (frames[a].s.length > 3) || a - b);
    const marks = names.flatMap(k => {
      const words = frames[k].s, half = words.length * 3.2, at = 8 + wide * k / Math.max(1, count);
      const from = Math.min(Math.max(0, at - half), 16 + wide - 2 * half), to = from + 2 * half + 8;
      if (taken.some(([a, b]) => from < b && to > a)) return [];
      taken.push([from, to]);
      const mark = document.createElement("i");
      mark.textContent = words;
      mark.style.left = `${from}px`;
      return [mark];
    });
    box.querySelectorAll("i").forEach(mark => mark.remove());
    box.prepend(...marks);
  }
  function theme() {
    const body = document.body, jupyter = body.dataset.jpThemeLight, code = body.dataset.vscodeThemeKind;
    const dark = jupyter ? jupyter === "false" : code ? code.includes("dark") : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "dark" : "light";
  }
  theme();
  new MutationObserver(theme).observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  new ResizeObserver(ruler).observe(find(".scrub"));
  new ResizeObserver(fit).observe(find(".films"));
  scrub.max = count;
  for (const part of all("[hidden]")) part.hidden = false;
  find(".strip")?.remove();
  look(films[0].opens);
  set(false);
  root.dataset.ready = Math.round(performance.now());
}
