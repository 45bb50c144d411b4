// A replicated log per node: role and term, and a cell for each entry, filled once the node
// knows that it is committed. The newest entries are drawn if there is no room for all.

function logs(film, svg) {
  const nodes = film.logs[0].length, top = 14, pitch = 50, tall = 30, ends = film.logs.flat().map(log => log ? log[2].length + log[3] : 0);
  const most = Math.max(1, ...ends), snapshots = film.logs.flat().some(log => log && log[3]);
  let wide = 1120, left, cell, first;

  const draw = p => {
    const parts = [], now = film.logs[Math.ceil(p)], before = film.logs[Math.max(0, Math.ceil(p) - 1)];
    now.forEach((log, node) => {
      const y = top + node * pitch, mark = (name, x, dy, text, size = 12) => parts.push(tag("text", { class: name, x, y: y + dy, "font-size": size }, text));
      mark("ink strong", 4, 13, `node ${node}`);
      if (!log) { mark("bad", 4, 28, "crashed"); return; }
      const [role, term, terms, base, commit] = log;
      mark(role === "leader" ? "ink strong" : "muted", 4, 28, `${role}, term ${term}`);
      if (role === "leader") parts.push(tag("path", { class: "done", d: `M${left - 6} ${y}v${tall}` }));
      const from = Math.max(first, base);
      if (base > first) parts.push(tag("rect", { class: "box", x: left, y, width: (base - first) * cell - 4, height: tall, rx: 4 }));
      terms.forEach((each, at) => {
        const index = base + at + 1, x = left + (index - 1 - first) * cell, c = each % 6, done = index <= commit;
        if (index <= from) return;
        const fresh = !before[node] || before[node][2][index - before[node][3] - 1] !== each;
        parts.push(tag("rect", { "data-entry": `${node} ${index} ${each}`, class: done ? `f${c}` : `pill s${c} late`, x, y, width: cell - 4, height: tall, rx: 4 }));
        if (fresh) parts.push(tag("rect", { class: "fresh", x: x - 2, y: y - 2, width: cell, height: tall + 4, rx: 5 }));
        parts.push(tag("text", { class: done ? `num n${c}` : "ink", x: x + cell / 2 - 2, y: y + 20, "font-size": 13, "text-anchor": "middle" }, each));
      });
    });
    const y = top + nodes * pitch + 6;
    for (let index = first + 1; index <= most; index++)
      parts.push(tag("text", { class: "muted", x: left + (index - 0.5 - first) * cell - 2, y, "font-size": 11, "text-anchor": "middle" }, index));
    ["in a cell: the term of the entry; below: its index", "filled: committed, as the node knows; dashed: not", ...snapshots ? ["grey: replaced by a snapshot"] : []].forEach((words, row) =>
      parts.push(tag("text", { class: "muted", x: 4, y: y + 20 + 15 * row, "font-size": 11 }, words)));
    svg.replaceChildren(...parts);
  };
  draw.fit = () => {
    wide = roomOf(svg);
    left = 150;
    const room = wide - left - 4, fits = Math.floor(room / 26);
    first = Math.max(0, most - fits);
    cell = Math.min(44, room / (most - first));
    svg.setAttribute("viewBox", `0 0 ${wide} ${top + nodes * pitch + 65}`);
  };
  return draw;
}
