// The graph: what travels and what every rank holds, at position p of the film.
// p counts stops; between two stops messages travel, at a stop they stand halfway.

const SVG = "http://www.w3.org/2000/svg";
const tag = (name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
};
const rectangle = (x, y, w, h) =>
  `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}z`;
const curve = w => `M${w[0]} ${w[1]}Q${w[2]} ${w[3]} ${w[4]} ${w[5]}`;
const along = (w, t) => {
  const a = (1 - t) ** 2, b = 2 * t * (1 - t), c = t * t;
  return [a * w[0] + b * w[2] + c * w[4], a * w[1] + b * w[3] + c * w[5]];
};
const head = (x, y, angle, size) => {
  const corner = side =>
    `L${(x - size * Math.cos(angle + side)).toFixed(1)} ${(y - size * Math.sin(angle + side)).toFixed(1)}`;
  return `M${x.toFixed(1)} ${y.toFixed(1)}${corner(-0.42)}${corner(0.42)}z`;
};
const eased = t => t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) ** 2;

function tablesAt(film) {
  // Walks from stop to stop and keeps its place, since playing goes one by one.
  let at = -1, now;
  return number => {
    if (number < at || at < 0) { now = new Map(film.start.map(c => [c[0] + "," + c[1], c])); at = 0; }
    while (at < number) for (const c of film.frames[++at].k) now.set(c[0] + "," + c[1], c);
    return now.values();
  };
}

// No word is smaller than this on the screen, however narrow the page.
const LEAST = 11;

function legible(svg, radius) {
  // Words grow around their middle where the picture is scaled down. One that then lies
  // on another, or a number that is far wider than its node, is left out.
  const wide = svg.clientWidth, least = LEAST * svg.viewBox.baseVal.width / wide;
  if (!wide) return LEAST;
  const kept = [], words = [...svg.querySelectorAll("text")].filter(text => text.textContent);
  for (const text of words) {
    text.dataset.size ||= text.getAttribute("font-size");
    text.dataset.y ||= text.getAttribute("y");
    const size = Math.max(text.dataset.size, least);
    text.setAttribute("font-size", size);
    text.setAttribute("y", +text.dataset.y + 0.36 * (size - text.dataset.size));
  }
  words.sort((a, b) => b.matches(".num,.strong") - a.matches(".num,.strong"));
  for (const text of words) {
    const { x, y, width, height } = text.getBBox();
    const gap = least / 4, near = b => x < b.x + b.width + gap && b.x < x + width + gap && y + gap < b.y + b.height && b.y + gap < y + height;
    const lies = kept.some(near) || text.matches(".num") && width > 2.1 * radius;
    text.setAttribute("visibility", lies ? "hidden" : "inherit");
    if (!lies) kept.push({ x, y, width, height });
  }
  if (least > LEAST) for (const text of svg.querySelectorAll(".told")) text.setAttribute("visibility", "hidden");  // it fills its place
  return least;
}

// Views that are drawn anew have as many units as there are pixels.
const roomOf = svg => Math.min(1120, Math.max(280, svg.parentElement.clientWidth || 1120));

function spread(panel, film) {
  // The panel is as wide as there is room; its bars take what its words leave of it.
  const wide = panel.clientWidth, [, , , tall] = panel.getAttribute("viewBox").split(" ");
  if (!wide) return;
  const [left, bars] = film.panel, part = (wide - bars + left - 80) / film.bar, at = x => bars + Math.min(film.bar, x - bars) * part + Math.max(0, x - bars - film.bar);
  panel.setAttribute("viewBox", `${left} 0 ${wide} ${tall}`);
  for (const group of panel.querySelectorAll(".stretch")) group.setAttribute("transform", `translate(${bars} 0)scale(${part} 1)translate(${-bars} 0)`);
  for (const text of panel.querySelectorAll("text")) {
    text.dataset.x ||= text.getAttribute("x");
    if (text.dataset.x > bars) text.setAttribute("x", at(+text.dataset.x));
  }
}

function graph(film, svg, panel) {
  const tables = tablesAt(film), still = svg.querySelector(".still");
  const layer = { stripes: tag("g"), moves: tag("g") };
  still?.replaceWith(layer.stripes, layer.moves);
  const bars = [...(panel?.querySelectorAll("[data-bar]") ?? [])];
  const words = [...(panel?.querySelectorAll("[data-sent]") ?? [])];
  const clip = panel?.querySelector("clipPath rect");
  let least = LEAST;
  const [wide, tall] = film.cell, pitch = (tall - 4) / film.n, inset = Math.min(3, wide / 6);
  let drawn = -1;

  function stripes(number, fresh) {
    const shares = {}, twice = [], changed = [], odd = [];
    for (const [rank, chunk, counts] of tables(number)) {
      if (chunk >= film.shown || !film.tables.length) continue;
      const x = film.tables[rank][0] + chunk * (wide + 2), y = film.tables[rank][1];
      if (counts === null) { odd.push([x + wide / 2, y + 19]); continue; }
      for (let share = 0; share < film.n; share++) {
        if (counts[share] === "0") continue;
        const top = y + tall - 2 - (share + 0.9) * pitch;
        const box = film.whole ? [x + inset, y + 2, wide - 2 * inset, tall - 4]
          : [x + inset, top, wide - 2 * inset, Math.max(0.8, 0.8 * pitch)];
        (shares[share % 6] ||= []).push(rectangle(...box));
        if (counts[share] > "1") twice.push(rectangle(box[0] - 1, box[1] - 1, box[2] + 2, box[3] + 2));
      }
      if (/[2-9]/.test(counts)) twice.push(rectangle(x, y, wide, tall));
    }
    if (fresh) for (const [rank, chunk] of film.frames[number].k)
      if (chunk < film.shown && film.tables.length)
        changed.push(rectangle(film.tables[rank][0] + chunk * (wide + 2), film.tables[rank][1], wide, tall));
    const parts = Object.entries(shares).map(([c, d]) => tag("path", { class: "f" + c, d: d.join("") }));
    if (twice.length) parts.push(tag("path", { class: "twice", d: twice.join("") }));
    if (changed.length) parts.push(tag("path", { class: "fresh", d: changed.join("") }));
    for (const [x, y] of odd) parts.push(tag("text", { class: "bad", x, y, "font-size": Math.max(13, least), "text-anchor": "middle" }, "?"));
    layer.stripes.replaceChildren(...parts);
  }

  function way(src, dst) {
    const found = film.ways[src + "," + dst];
    if (found) return found;
    const [x0, y0] = film.nodes[src], [x1, y1] = film.nodes[dst];
    return [x0, y0, (x0 + x1) / 2, (y0 + y1) / 2, x1, y1];
  }

  function moves(frame, part, rests) {
    const parts = [], many = frame.m.length > film.pills || film.n > 12, lines = {}, heads = {};
    const cuts = frame.c.map(([a, b]) => {
      const [x0, y0] = film.nodes[a], [x1, y1] = film.nodes[b], length = Math.hypot(x1 - x0, y1 - y0) || 1;
      const dx = -40 * (y1 - y0) / length, dy = 40 * (x1 - x0) / length;
      return `M${(x0 + x1 - dx) / 2} ${(y0 + y1 - dy) / 2}l${dx} ${dy}`;
    });
    if (frame.g) parts.push(tag("path", { class: "among", d: frame.g, "stroke-width": 2 * film.radius + 22 }));
    if (cuts.length) parts.push(tag("path", { class: "cut", d: cuts.join("") }));
    for (const [src, dst, , fate] of frame.m) {
      const w = way(src, dst), c = src % 6 + (fate === 2 ? " late" : "");
      (lines[c] ||= []).push(curve(w));
      (heads[src % 6] ||= []).push(head(w[4], w[5], Math.atan2(w[5] - w[3], w[4] - w[2]), film.n > 64 ? 4 : 12));
    }
    for (const c in lines) parts.push(tag("path", { class: "flow s" + c, d: lines[c].join("") }));
    for (const c in heads) parts.push(tag("path", { class: "f" + c, d: heads[c].join("") }));
    const pairs = new Set(frame.m.map(m => m[0] + "," + m[1]));
    for (const [src, dst, text, fate] of frame.m) {
      // side by side, not on top of each other, where two ranks send to each other
      let t = rests || fate === 2 ? (pairs.has(dst + "," + src) ? 0.34 : 0.5) : part;
      if (fate === 1) t = Math.min(t, cuts.length ? 0.36 : 0.55);
      const [x, y] = along(way(src, dst), t), c = src % 6;
      if (many) { parts.push(tag("circle", { class: "dot s" + c, cx: x, cy: y, r: film.n <= 64 ? 4 : 2 })); continue; }
      const w = 0.61 * least * text.length + 16, h = least + 13;
      parts.push(tag("rect", { class: "pill s" + c + (fate === 2 ? " late" : ""), x: x - w / 2, y: y - h / 2, width: w, height: h, rx: h / 2 }));
      parts.push(tag("text", { class: "mono ink", x, y: y + 0.36 * least, "font-size": least, "text-anchor": "middle" }, text));
    }
    const ring = (name, rank) => {
      const [cx, cy] = film.nodes[rank];
      parts.push(tag("circle", { class: name, cx, cy, r: film.radius + 4 }));
    };
    if (rests || part > 0.5) for (const rank of frame.r) ring("meet", rank);
    const cross = rank => {
      const [x, y] = film.nodes[rank], r = film.radius + 5;
      parts.push(tag("path", { class: "cross", d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` }));
    };
    if (rests || part > 0.5) frame.d.forEach(cross);
    if (frame.b) {
      for (const rank of film.stuck) ring("stuck", rank);
      film.gone.forEach(cross);
    }
    layer.moves.replaceChildren(...parts);
  }

  const draw = (p, moment, zoom, over) => {
    const number = Math.ceil(p), rests = p === number;
    const part = rests ? 1 : eased(Math.min(1, (p - number + 1) / 0.75));
    const arrived = rests || part === 1, shown = arrived ? number : number - 1;
    if (shown !== drawn || rests) { stripes(shown, arrived && number > 0); drawn = shown; }
    moves(over ? { ...film.frames[number], m: [], r: [], d: [] } : film.frames[number], part, rests);
    const sent = film.sent[shown];
    bars.forEach((bar, row) => bar.setAttribute("width", film.bar * sent[film.rows[row]] / film.full));
    words.forEach((word, row) => { word.textContent = film.bytes ? readable(sent[film.rows[row]]) : sent[film.rows[row]]; });
    if (clip) clip.setAttribute("width", Math.max(0, film.bar * moment));
  };
  draw.fit = () => {
    if (panel) spread(panel, film);
    least = Math.max(LEAST, legible(svg, film.radius));
    if (panel) legible(panel);
  };
  return draw;
}

function readable(count) {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (count >= size) return `${Number((count / size).toPrecision(4))} ${unit}`;
  return `${count} B`;
}
