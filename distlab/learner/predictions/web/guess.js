// Numbers are read, written and judged as in answers.py.
const readable = (x) => {
  const short = Number(x.toPrecision(4));
  const whole = Number.isInteger(x) ? x : short;
  if (Number.isInteger(whole) && Math.abs(whole) < 1e7)
    return Math.abs(whole) < 1e4 ? `${whole}` : whole.toLocaleString("en-US");
  const plain = Math.abs(short) >= 1e-4 && Math.abs(short) < 1e4;
  return plain ? `${short}` : short.toExponential().replace("+", "");
};
const rough = (x) => readable(Number(x.toPrecision(2)));
const scales = [
  { us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, second: 1, min: 60, minute: 60, h: 3600, hour: 3600, d: 86400, day: 86400 },
  { B: 1, byte: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 },
];
const factorOf = (given, own) => {
  for (const scale of scales) {
    const [one, other] = [given, own].map((name) => scale[name] ?? scale[name.replace(/s$/, "")]);
    if (one && other) return one / other;
  }
  return NaN;
};
const numberIn = (text, unit) => {
  text = text.trim().replace(/^(about|around|ca\.?|[~≈=])\s*/i, "");
  const bare = unit && text.endsWith(unit) ? text.slice(0, -unit.length) : text;
  if (!/[a-zµ]$/i.test(bare)) text = bare.trim();
  const found = /^(.*[\d.])\s*([a-zµ]+)$/i.exec(text);
  const factor = found ? factorOf(found[2], unit) : 1;
  if (found) text = found[1];
  const grouped = /^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text);
  text = text.replaceAll("−", "-").replaceAll(",", grouped ? "" : ".");
  const parts = text.split("/");
  const written = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;
  if (parts.length > 2 || !parts.every((part) => written.test(part))) return NaN;
  return factor * (parts.length > 1 ? parts[0] / parts[1] : Number(text));
};
const verdict = (guess, measured, said) => {
  if (said(guess) === said(measured)) return "just as you said";
  if (guess * measured <= 0) return `you were off by ${said(Math.abs(guess - measured))}`;
  const ratio = guess / measured;
  const off = Math.abs(ratio - 1);
  if (off < 0.1) {
    const side = guess > measured ? "high" : "low";
    return `your guess was ${Number((100 * off).toPrecision(2))} % too ${side}`;
  }
  if (ratio < 0.1) return `that is ${rough(measured / guess)} times your guess`;
  return `your guess was ${rough(ratio)} ${ratio > 1 ? "times that" : "of it"}`;
};
const line = (value, { unit, measured, formula }) => {
  const isChoice = typeof measured === "string";
  const guess = isChoice ? value : numberIn(value, unit);
  const said = (x) => (isChoice ? x : `${readable(x)} ${unit}`.trim());
  const parts = [`you said ${said(guess)}`];
  if (formula !== null) parts.push(`the formula says ${said(formula)}`);
  const end = isChoice
    ? guess === measured ? ", as you said" : ""
    : verdict(guess, measured, said);
  parts.push(isChoice ? `measured: ${measured}${end}` : `measured ${said(measured)}: ${end}`);
  return parts.join(" · ");
};

const lesson = location.pathname.split("/").filter(Boolean).pop()?.replace(/\.html$/, "");
const place = (guess) => `distlab.guess.${lesson}.${guess}`;
const keptIn = (shown) => {
  const kept = stored(place(shown.dataset.guess));
  return typeof kept === "string" ? kept : null;
};
const compare = (shown, value) => {
  const result = JSON.parse(atob(shown.dataset.result));
  shown.textContent = value === null ? result.first : line(value, result);
  shown.classList.toggle("first", value === null);
};

const upgradeForm = (form) => {
  const { guess, unit } = form.dataset;
  const field = form.querySelector("input[type=text]");
  const boxes = [...form.querySelectorAll("input[type=radio]")];
  const said = form.querySelector("[role=status]");
  const [button, clear] = form.querySelectorAll("button");
  const fill = (value) => {
    if (field) field.value = value ?? "";
    for (const box of boxes) box.checked = box.value === value;
  };
  const say = (value) => {
    const number = field && value !== null;
    const read = number ? `${readable(numberIn(value, unit))} ${unit}`.trim() : value;
    said.textContent = value === null ? "" : `You said ${read}.`;
    button.textContent = value === null ? "Keep my guess" : "Change my guess";
    clear.hidden = value === null;
    for (const shown of document.querySelectorAll(".distlab-compared"))
      if (shown.dataset.guess === guess) compare(shown, value);
  };
  const keep = (value) => {
    store(place(guess), value);
    say(value);
  };
  const given = () => (field ?? boxes.find((box) => box.checked))?.value.trim() ?? "";
  form.onsubmit = (event) => {
    event.preventDefault();
    event.stopPropagation();
    const value = given();
    if (!value) said.textContent = field ? "Write a number first." : "Choose one first.";
    else if (tell({ to: form.id, value })) window.distlabFocus = form.id;
    else if (!isPage) said.textContent = "Run this cell, then keep your guess.";
    else if (field && !Number.isFinite(numberIn(value, unit)))
      said.textContent =
        `'${value}' is not a number${unit && ` in ${unit}`}: ` +
        "write one such as 7, 1e3 or 2/3.";
    else keep(value);
  };
  clear.onclick = () => {
    fill(null);
    keep(null);
    (field ?? boxes[0]).focus();
  };
  unheard(form);
  if (window.distlabFocus === form.id) button.focus();
  const kept = keptIn(form);
  if (kept !== null) {
    fill(kept);
    say(kept);
  }
};

forEach("form.distlab-guess", upgradeForm);
forEach(".distlab-compared", (shown) => {
  const kept = keptIn(shown);
  if (kept !== null) compare(shown, kept);
});
