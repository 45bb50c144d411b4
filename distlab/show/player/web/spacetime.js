// Space-time of nodes: a line of life for each, and for each message an arrow from the stop
// at which it is sent to the one at which it is taken. Where everything is comes from the
// film; here only the window moves, and what is yet to come is pale.

function spacetime(film, svg) {
  const w = film.spacetime, left = w.left, count = film.frames.length - 1, top = w.top, bottom = w.bottom;
  let wide = 1120, unit = w.unit, taken = [];

  function words(parts, name, x, y, text, anchor = "middle") {
    const from = anchor === "middle" ? x - 3.4 * text.length : x, to = from + 6.8 * text.length;
    if (from < left - 4 || to > wide || taken.some(([a, b, at]) => from < b && a < to && Math.abs(at - y) < 12)) return;
    taken.push([from, to, y]);
    parts.push(tag("text", { class: name, x, y, "font-size": 11, "text-anchor": anchor }, text));
  }

  function walls(parts, x, p) {
    for (const [from, until, y] of w.walls) if (from <= p)
      parts.push(tag("path", { class: "wall", d: `M${x(from)} ${y}H${x(Math.min(until, p))}` }));
    for (const [from, until, text] of w.sides) if (from <= p) {
      const end = Math.min(until, p);
      parts.push(tag("path", { class: "span", d: `M${x(from)} ${top - 2}v-5H${x(end)}v5` }));
      words(parts, "bad halo", Math.max(left + 4, x(from)) + 2, top - 11, text, "start");
    }
  }

  function lives(parts, x, p) {
    for (const [y, from, until, dead] of w.lives) {
      const now = Math.min(until, Math.max(from, p));
      if (now > from) parts.push(tag("path", { class: dead ? "gone" : "life", d: `M${x(from)} ${y}H${x(now)}` }));
      if (until > now) parts.push(tag("path", { class: "life later", d: `M${x(now)} ${y}H${x(until)}` }));
    }
  }

  function strand(parts, texts, x, p, [x0, y0, x1, y1, c, fate, text, tx, ty, bow]) {
    const done = Math.min(1, Math.max(0, (p - x0) / (x1 - x0))), dash = fate === 2 ? " late" : "";
    const way = [x(x0), y0, x((x0 + x1) / 2 - bow), (y0 + y1) / 2 + (y0 === y1 ? 26 : 0), x(x1), y1], part = t => along(way, t);
    const line = (a, b, name) => {  // the control of a part is the curve's blossom at its ends
      const [u, v, s] = [(1 - a) * (1 - b), a * b, a + b - 2 * a * b];
      const bend = [0, 1].map(k => u * way[k] + s * way[k + 2] + v * way[k + 4]);
      parts.push(tag("path", { class: `strand s${c}${dash}${name}`, d: curve([...part(a), ...bend, ...part(b)].map(n => n.toFixed(1))) }));
    };
    if (done < 1) line(done, 1, " later");
    if (done > 0) line(0, done, "");
    const [ex, ey] = part(1), later = done < 1 ? " later" : "";
    if (fate === 1) parts.push(tag("path", { class: "cross" + later, d: `M${ex - 5} ${ey - 5}l10 10m0 -10l-10 10` }));
    else if (fate === 0) parts.push(tag("path", { class: `f${c}${later}`, d: head(ex, ey, Math.atan2(ey - way[3], ex - way[2]), 10) }));
    if (text) words(texts, "mono ink halo" + (done > 0 ? "" : " later"), x(tx), ty + 3.5, text);
  }

  function sign(parts, texts, x, p, [sx, sy, kind, c, text, tx, ty]) {
    const later = sx > p ? " later" : "", cx = x(sx);
    if (kind === "crash") parts.push(tag("path", { class: "cross" + later, d: `M${cx - 7} ${sy - 7}l14 14m0 -14l-14 14` }));
    else if (kind === "restart") parts.push(tag("path", { class: "f" + c + later, d: `M${cx - 5} ${sy - 8}l12 8l-12 8z` }));
    else if (kind === "timer") {
      parts.push(tag("circle", { class: `clock s${c}${later}`, cx, cy: sy, r: 6 }));
      parts.push(tag("path", { class: `clock s${c}${later}`, d: `M${cx} ${sy - 4}v4h3` }));
    } else if (kind === "dot") parts.push(tag("circle", { class: "f" + c + later, cx, cy: sy, r: 4 }));
    const look = kind === "crash" || kind === "restart" ? "bad halo" : "ink strong halo";
    if (text) words(texts, look + later, x(tx), ty + 3.5, text);
  }

  function draw(p) {
    const seen = (wide - 16 - left) / unit, parts = [], texts = [];
    taken = [];
    const offset = Math.min(Math.max(0, p - seen * 0.6), Math.max(0, count - seen));
    const x = place => left + (place - offset) * unit, inside = (a, b) => b >= offset && a <= offset + seen;
    const now = Math.ceil(p);
    if (now > 0) parts.push(tag("rect", { class: "track", x: x(now - 1), y: top, width: unit, height: bottom - top }));
    walls(parts, x, p);
    lives(parts, x, p);
    for (const each of w.strands) if (inside(each[0], each[2])) strand(parts, texts, x, p, each);
    for (const each of w.signs) if (inside(each[0] - 1, each[0] + 1)) sign(parts, texts, x, p, each);
    parts.push(...texts);
    for (let k = Math.max(1, Math.floor(offset)); k <= Math.min(count, Math.ceil(offset + seen)); k++)
      words(parts, k === now ? "ink strong" : "muted", x(k - 0.5), 13, `${k}`);
    parts.push(tag("path", { class: "now", d: `M${x(p).toFixed(1)} ${top - 6}V${bottom}` }));
    parts.push(tag("rect", { class: "paper", x: 0, y: 0, width: left - 2, height: bottom + 8 }));
    parts.push(tag("rect", { class: "paper", x: wide - 10, y: 0, width: 10, height: bottom + 8 }));
    for (const [y, name, c, client] of w.names) {
      parts.push(client ? tag("rect", { class: "f" + c, x: 4, y: y - 4, width: 8, height: 8 }) : tag("circle", { class: "f" + c, cx: 8, cy: y, r: 5 }));
      parts.push(tag("text", { class: client ? "muted" : "ink", x: 19, y: y + 4, "font-size": 12 }, name));
    }
    const told = wide < 700 ? "order of events, not time" : "to the right: the order of events; distances are not time, the lanes have the clock";
    parts.push(tag("text", { class: "muted", x: wide < 700 ? 4 : left, y: bottom + 22, "font-size": 11 }, told));
    svg.replaceChildren(...parts);
  }

  draw.fit = () => {
    wide = roomOf(svg);
    unit = w.unit * Math.min(1, Math.max(0.55, wide / 800));
    svg.setAttribute("viewBox", `0 0 ${wide} ${w.height}`);
  };
  return draw;
}
