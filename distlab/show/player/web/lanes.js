// Lanes: each rank's time, on the run's own clock. A window of it is drawn anew when it
// moves; while playing only the line of now and the veil over what is to come move.

// hatchings, by what matplotlib calls them, in a square of 6
const HATCHES = { "////": "M0 6L6 0", "....": "M2 3h2", "\\\\\\\\": "M0 0L6 6", xxxx: "M0 6L6 0M0 0L6 6", "----": "M0 3h6", "||||": "M3 0v6" };

function lanes(film, svg) {
  const left = 76, top = 40, rows = film.rows, holds = film.held.length > 0;
  let wide = 1120, right = 1104, pitch, tall, bottom;
  const rowOf = new Map(rows.map((rank, row) => [rank, row]));
  const y = rank => top + rowOf.get(rank) * pitch + (holds ? 0.1 * pitch : (pitch - tall) / 2);
  const fixed = tag("g"), lit = tag("g", { class: "lit" }), counts = film.held.map(() => tag("text", { class: "ink", "font-size": 11 })), veil = tag("rect", { class: "future", y: top - 4 });
  const now = tag("path", { class: "now" });
  const id = `look${Math.random()}-`, looks = Object.keys(film.looks), defs = tag("defs");
  for (const [k, [fill, stroke, , hatch]] of Object.values(film.looks).entries()) {
    const pattern = tag("pattern", { id: id + k, width: 6, height: 6, patternUnits: "userSpaceOnUse" });
    pattern.append(tag("rect", { width: 6, height: 6, fill }), tag("path", { d: HATCHES[hatch] ?? "", stroke, "stroke-width": hatch === "...." ? 2 : 1 }));
    defs.append(pattern);
  }
  const look = (state, rank) => film.looks[state] ? { fill: `url(#${id}${looks.indexOf(state)})` } : { class: state === "moving" ? "f" + rank % 6 : state };
  svg.replaceChildren(defs, fixed, veil, lit, ...counts, now);
  let from = 0, until = 1;
  const x = t => left + (t - from) / (until - from) * (right - left);

  function spans(row, parts) {
    for (const state in film.lanes[row]) {
      const list = film.lanes[row][state], d = [], strip = state === "working";
      const above = y(rows[row]) + (strip ? 0.76 * tall : 0), high = strip ? 0.24 * tall : tall;
      let begin = -9, end = -9;  // what is nearer than a third of a pixel becomes one
      const flush = () => { if (end > left && begin < right) d.push(rectangle(Math.max(left, begin), above, Math.max(0.4, Math.min(right, end) - Math.max(left, begin)), high)); };
      for (let i = 0; i < list.length; i += 2) {
        const a = x(list[i]), b = x(list[i + 1]);
        if (b < left || a > right) continue;
        if (a - end > 0.34) { flush(); begin = a; }
        end = Math.max(b, end);
        if (a - begin < 0 || end < begin) begin = a;
      }
      flush();
      parts.push(tag("path", { ...look(state, rows[row]), d: d.join("") }));
    }
  }

  function words(parts) {
    const seen = film.words.filter(([, start, end]) => start > from && start < until && x(end) - x(start) > 4);
    parts.push(tag("path", { class: "gap", d: seen.map(([row, start]) => `M${x(start).toFixed(1)} ${y(rows[row])}v${tall.toFixed(1)}`).join("") }));
    film.words.forEach(each => word(parts, each));
  }

  function word(parts, [row, start, end, text, state], a = Math.max(left, x(start)), b = Math.min(right, x(end))) {
    const shown = [text, holds && text.match(/\d+/)?.[0]].find(words => words && 6.4 * words.length + 6 <= b - a);
    if (!shown) return;
    const [stroke, , fill] = film.looks[state] ?? [];
    const style = fill ? { fill, stroke, "stroke-width": 3, "paint-order": "stroke" } : { class: state === "moving" ? "n" + rows[row] % 6 : "ink" };
    parts.push(tag("text", { ...style, x: (a + b) / 2, y: y(rows[row]) + tall / 2 + 4, "font-size": 11, "text-anchor": "middle" }, shown));
  }

  function light(moment) {  // what is being done, not pale
    const parts = [];
    for (const each of film.words) if (each[1] <= moment && moment < each[2]) {
      const a = Math.max(left, x(each[1])), b = Math.min(right, x(each[2]));
      parts.push(tag("rect", { ...look(each[4], rows[each[0]]), x: a, y: y(rows[each[0]]), width: Math.max(0, b - a), height: tall }));
      word(parts, each);
    }
    lit.replaceChildren(...parts);
  }

  function held(parts) {
    film.held.forEach((list, row) => {
      const floor = y(rows[row]) + tall + 0.36 * pitch, d = list.filter(([a, b]) => b > from && a < until).map(([a, b, count]) => {
        const x0 = Math.max(left, x(a)), high = 0.32 * pitch * count / film.most;
        return rectangle(x0, floor - high, Math.min(right, x(b)) - x0, high);
      });
      const begins = Math.max(left, x(film.over[0])), idle = rectangle(begins, y(rows[row]), Math.max(0, Math.min(right, x(film.over[1])) - begins), tall);
      parts.push(tag("path", { class: "box", d: idle }), tag("path", { class: "waiting", d: d.join("") }));
    });
  }

  function key(parts, at) {  // what colours mean, each beside a swatch of it; returns how many lines
    let x0 = 4, line = 0;
    for (const [state, words] of film.key) {
      const long = 6.6 * words.length + 34;
      if (x0 > 4 && x0 + long > wide) { x0 = 4; line++; }
      const y0 = at + 17 * line - 4, thin = state === "working";
      if (state === "arrow") parts.push(tag("path", { class: "arrow sign", d: `M${x0} ${y0}h9` }), tag("path", { class: "muted", d: head(x0 + 15, y0, 0, 8) }));
      else if (state === "dropped") parts.push(...lost(x0, y0, x0 + 10, y0, "sign"));
      else parts.push(tag("path", { ...look(state, 0), d: rectangle(x0, thin ? y0 + 1 : y0 - 5, 14, thin ? 3 : 10) }));
      parts.push(tag("text", { class: "muted", x: x0 + 19, y: y0 + 4, "font-size": 11 }, words));
      x0 += long;
    }
    return line + 1;
  }

  const lost = (x0, y0, x1, y1, name) => [tag("path", { class: `arrow ${name}`, d: `M${x0.toFixed(1)} ${y0}L${x1.toFixed(1)} ${y1}` }),
    tag("path", { class: "cross small", d: `M${x1 - 4} ${y1 - 4}l8 8m0 -8l-8 8` })];

  function arrows(parts) {
    const seen = film.arrows.filter(a => a[3] >= from && a[2] <= until);
    if (seen.length > 3000) return `${seen.length.toLocaleString("en")} arrows left out: zoom in with +`;
    const lines = {}, heads = {};
    for (const [src, dst, sent, got, dropped] of seen) {
      const x0 = x(sent), x1 = x(got), y0 = y(src) + tall / 2, y1 = y(dst) + tall / 2;
      if (dropped) { parts.push(...lost(x0, y0, Math.max(x1, x0 + 6), (y0 + y1) / 2, "s" + src % 6)); continue; }
      (lines[src % 6] ||= []).push(`M${x0.toFixed(1)} ${y0.toFixed(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}`);
      if (seen.length <= 400) (heads[src % 6] ||= []).push(head(x1, y1, Math.atan2(y1 - y0, x1 - x0), 8));
    }
    const thin = seen.length > 400 ? " thin" : "";
    for (const c in lines) parts.push(tag("path", { class: `arrow s${c}${thin}`, d: lines[c].join("") }));
    for (const c in heads) parts.push(tag("path", { class: "f" + c, d: heads[c].join("") }));
    return "";
  }

  function axis(parts) {
    const seconds = (until - from) * film.lasts, rough = seconds / (right - left) * Math.min(147, (right - left) / 4);
    const size = 10 ** Math.floor(Math.log10(rough || 1)), step = [1, 2, 5, 10].find(m => m * size >= rough) * size;
    const unit = film.unit ? [film.unit, 1] : seconds >= 2 ? ["s", 1] : seconds >= 2e-3 ? ["ms", 1e3] : ["µs", 1e6];
    const digits = Math.max(0, -Math.floor(Math.log10(step * unit[1]) + 1e-9));
    const first = Math.ceil((film.begin + from * film.lasts) / step) * step;
    for (let t = first; t <= film.begin + until * film.lasts + 1e-12; t += step) {
      const at = x((t - film.begin) / film.lasts);
      parts.push(tag("path", { class: "axis", d: `M${at.toFixed(1)} ${top - 4}V${bottom + 4}` }));
      parts.push(tag("text", { class: "muted", x: at, y: bottom + 20, "font-size": 11, "text-anchor": "middle" }, (t * unit[1]).toFixed(digits)));
    }
    parts.push(tag("text", { class: "muted", x: right, y: bottom + 40, "font-size": 11, "text-anchor": "end" }, `${film.unit ? "time" : "time since the run began"}, ${unit[0]}`));
  }

  function labels(parts) {
    let free = left;
    for (const [time, text] of film.marks) {
      const at = x(time);
      if (at < free || at + 6.2 * text.length > wide) continue;
      parts.push(tag("text", { class: "muted", x: at, y: top - 14, "font-size": 11 }, text));
      parts.push(tag("path", { class: "axis", d: `M${at.toFixed(1)} ${top - 10}V${bottom}` }));
      free = at + 6.2 * text.length + 12;
    }
    for (const [rank, time, text, end] of film.faults) {
      if (text.startsWith("partition") && end >= from && time <= until) {
        const a = Math.max(left, x(time)), b = Math.min(right, x(end));
        parts.unshift(tag("rect", { class: "split", x: a, y: top - 4, width: Math.max(1, b - a), height: bottom - top + 8 }));
        parts.push(tag("text", { class: "bad", x: Math.min(a + 4, right - 150), y: top - 8, "font-size": 11 }, text.replace("partition", "partition:")));
        continue;
      }
      if (!rowOf.has(rank) || time < from || time > until) continue;
      const at = x(time), mid = y(rank) + tall / 2;
      const mark = text === "restart" ? `M${at} ${mid - 9}v18` : `M${at - 6} ${mid - 6}l12 12m0 -12l-12 12`;
      parts.push(tag("path", { class: "cross", d: mark }));
      parts.push(tag("text", { class: "bad", x: Math.min(at + 12, right - 40), y: film.words.length ? y(rank) - 3 : mid - 6, "font-size": 11 }, text));
    }
  }

  function window_() {
    const parts = [];
    axis(parts);
    held(parts);
    rows.forEach((_, row) => spans(row, parts));
    const left_out = arrows(parts);
    parts.push(tag("rect", { class: "paper", x: 0, y: top - 8, width: left - 2, height: bottom - top + 16 }));
    for (const rank of rows) parts.push(tag("text", { class: "muted", x: 4, y: y(rank) + tall / 2 + 4, "font-size": 12 }, film.names[rowOf.get(rank)]));
    labels(parts);
    if (film.words.length) words(parts);
    key(parts, bottom + 64);
    if (left_out) parts.push(tag("text", { class: "bad", x: 4, y: top - 28, "font-size": 11 }, left_out));
    counts.forEach((text, row) => { text.setAttribute("x", right + 6); text.setAttribute("y", y(rows[row]) + tall + 0.36 * pitch); });
    fixed.replaceChildren(...parts);
  }

  svg.addEventListener("click", event => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * wide;
    if (at > left) svg.dispatchEvent(new CustomEvent("moment", { bubbles: true, detail: from + (at - left) / (right - left) * (until - from) }));
  });
  let shown = 1;
  const draw = (p, moment, zoom) => {
    const share = 1 / zoom;
    if (zoom !== shown || moment < from || moment > until) {
      shown = zoom;
      from = Math.min(1 - share, Math.max(0, moment - share * 0.3));
      until = from + share;
      window_();
    }
    const at = Math.min(right, x(moment));
    light(moment);
    counts.forEach((text, row) => { text.textContent = film.held[row].length ? `holds ${film.held[row].find(([a, b]) => a <= moment && moment < b)?.[2] ?? 0}` : ""; });
    veil.setAttribute("x", at);
    veil.setAttribute("width", Math.max(0, right + 8 - at));
    now.setAttribute("d", `M${at.toFixed(1)} ${top - 6}V${bottom + 6}`);
  };
  draw.fit = room => {  // rows are as high as the graph leaves room for
    wide = roomOf(svg);
    right = wide - (holds ? 66 : 16);
    const rest = top + 56 + 17 * key([], 0), least = Math.min(holds ? 64 : 46, Math.max(holds ? 28 : 16, 400 / rows.length));
    pitch = Math.max(least, Math.min(76, (room - rest) / rows.length));
    tall = (holds ? 0.5 : 0.56) * pitch;
    bottom = top + rows.length * pitch;
    veil.setAttribute("height", bottom - top + 8);
    svg.setAttribute("viewBox", `0 0 ${wide} ${rest + rows.length * pitch}`);
    window_();
  };
  return draw;
}
