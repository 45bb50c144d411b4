// Space-time, as Lamport drew it: a line per rank, a slanted arrow per message. Across
// goes the order of things, stop by stop, and not the clock; the lanes show that.

function space(film, svg) {
  const left = 76, top = 46, rows = film.rows, count = film.frames.length - 1;
  const rowOf = new Map(rows.map((rank, row) => [rank, row]));
  const y = rank => top + (rowOf.get(rank) + 0.5) * pitch;
  let wide, unit, seen, pitch, bottom;

  function life(parts, x, p) {
    for (const rank of rows) {
      let from = 0, dead = false;
      const part = until => parts.push(tag("path", { class: dead ? "gone" : "life", d: `M${x(from)} ${y(rank)}H${x(until)}` }));
      for (const [who, , text, , at] of film.faults) {
        if (who !== rank || at > p || text.startsWith("partition")) continue;
        part(at);
        from = at;
        dead = text !== "restart" && text !== "corrupt";
        const mark = dead ? `M${x(at) - 7} ${y(rank) - 7}l14 14m0 -14l-14 14` : `M${x(at)} ${y(rank) - 9}v18`;
        parts.push(tag("path", { class: "cross", d: mark }));
        parts.push(tag("text", { class: "bad", x: x(at) + 10, y: y(rank) - 9, "font-size": 11 }, text));
      }
      part(count);
    }
  }

  function splits(parts, x, p) {
    for (const [, , text, , at, until] of film.faults) {
      if (!text.startsWith("partition") || at > p) continue;
      const end = Math.min(p, until);
      parts.push(tag("rect", { class: "split", x: x(at), y: top, width: Math.max(0, x(end) - x(at)), height: bottom - top }));
      parts.push(tag("text", { class: "bad", x: x(at) + 4, y: top + 11, "font-size": 11 }, text));
    }
  }

  function message(parts, x, k, p, [src, dst, text, fate]) {
    if (!rowOf.has(src) || !rowOf.has(dst)) return;
    const begin = k - 0.85, end = fate === 1 ? k - 0.5 : k - 0.15, done = Math.min(1, (p - begin) / (end - begin));
    const x0 = x(begin), y0 = y(src), share = fate === 1 ? 0.5 : 1, later = done <= 0 ? " later" : "";
    const full = [x(end), y0 + (y(dst) - y0) * share], part = done <= 0 ? 1 : done;
    const x1 = x0 + (full[0] - x0) * part, y1 = y0 + (full[1] - y0) * part, c = src % 6;
    parts.push(tag("path", { class: `arrow s${c}${later}${fate === 2 ? " late" : ""}`, d: `M${x0.toFixed(1)} ${y0}L${x1.toFixed(1)} ${y1.toFixed(1)}`, "stroke-width": 2 }));
    parts.push(tag("circle", { class: `f${c}${later}`, cx: x0, cy: y0, r: 3.5 }));
    if (fate === 1 && done >= 1) parts.push(tag("path", { class: "cross", d: `M${x1 - 6} ${y1 - 6}l12 12m0 -12l-12 12` }));
    else parts.push(tag("path", { class: `f${c}${later}`, d: head(x1, y1, Math.atan2(y1 - y0, x1 - x0), 9) }));
    if (unit > 100 && rows.length <= 8 && done > 0)
      parts.push(tag("text", { class: "mono muted", x: x0 + 6, y: y0 - 6, "font-size": 11 }, text));
  }

  const draw = p => {
    const offset = Math.min(Math.max(0, p - seen * 0.6), Math.max(0, count - seen)), parts = [];
    const x = at => left + (at - offset) * unit;
    splits(parts, x, p);
    life(parts, x, p);
    const first = Math.max(1, Math.floor(offset)), last = Math.min(count, Math.ceil(offset + seen));
    let budget = 600, free = left;
    for (let k = first; k <= last; k++) {
      const frame = film.frames[k];
      parts.push(tag("path", { class: "axis", d: `M${x(k)} ${top - 6}V${bottom}` }));
      const at = x(k - 1) + 4;
      if (at >= free) {
        parts.push(tag("text", { class: "muted", x: at, y: top - 14, "font-size": 11 }, frame.s));
        free = at + 6.4 * frame.s.length + 8;
      }
      if (frame.r.length) {
        const ys = frame.r.filter(rank => rowOf.has(rank)).map(y), later = p <= k - 0.5 ? " later" : "";
        parts.push(tag("path", { class: "meet" + later, d: `M${x(k - 0.5)} ${Math.min(...ys) - 8}V${Math.max(...ys) + 8}` }));
      }
      for (const move of frame.m) if (budget-- > 0) message(parts, x, k, p, move);
    }
    if (budget < 0) parts.push(tag("text", { class: "bad", x: left, y: bottom + 18, "font-size": 11 }, `${(-budget).toLocaleString("en")} more arrows in this part are left out.`));
    else parts.push(tag("text", { class: "muted", x: left, y: bottom + 18, "font-size": 11 }, wide < 700 ? "order of events, not time" : "to the right: the order of events; distances are not time"));
    parts.push(tag("path", { class: "now", d: `M${x(p).toFixed(1)} ${top - 6}V${bottom}` }));
    parts.push(tag("rect", { class: "paper", x: 0, y: 0, width: left - 4, height: bottom }));
    for (const rank of rows) parts.push(tag("text", { class: "muted", x: 4, y: y(rank) + 4, "font-size": 12 }, `rank ${rank}`));
    svg.replaceChildren(...parts);
  };
  draw.fit = height => {
    wide = roomOf(svg);
    pitch = Math.max(Math.min(70, Math.max(20, 280 / rows.length)), Math.min(76, (height - top - 34) / rows.length));
    bottom = top + rows.length * pitch;
    const room = wide - 16 - left;
    unit = Math.min(220, Math.max(84, room / Math.max(1, count)));
    seen = room / unit;
    svg.setAttribute("viewBox", `0 0 ${wide} ${bottom + 34}`);
  };
  return draw;
}
