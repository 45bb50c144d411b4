(() => {
  // Storage can be forbidden or full: then a guess lasts as long as the page.
  const stored = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem("distlab.guess." + key);
      localStorage.setItem("distlab.guess." + key, value);
    } catch {}
    return value ?? null;
  };
  const tell = (message) => {
    const colab = window.google?.colab?.kernel;
    if (window.distlabTell) window.distlabTell(message);
    else if (colab) colab.invokeFunction("distlab.tell", [message], {});
    else return false;
    return true;
  };
  // A notebook whose kernel is gone keeps nothing; a page that was exported does.
  const isPage = !document.getElementById("jupyter-config-data");

  const readable = (x) => Number(x.toPrecision(4)).toLocaleString("en-US");
  const numberIn = (text, unit) => {
    text = text.trim();
    if (unit && text.endsWith(unit)) text = text.slice(0, -unit.length).trim();
    const grouped = /^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text);
    text = text.replaceAll("−", "-").replaceAll(",", grouped ? "" : ".");
    const [above, below] = text.split("/");
    return above.trim() ? Number(above) / (below === undefined ? 1 : Number(below)) : NaN;
  };
  const verdict = (guess, measured) => {
    if (readable(guess) === readable(measured)) return "just as you said";
    const ratio = guess / measured;
    if (!(ratio > 0)) return "";
    if (Math.abs(ratio - 1) < 0.1) {
      const percent = (100 * Math.abs(ratio - 1)).toPrecision(2);
      return `your guess was ${Number(percent)} % too ${ratio > 1 ? "high" : "low"}`;
    }
    if (ratio < 0.1) return `that is ${Number((1 / ratio).toPrecision(2))} times your guess`;
    return `your guess was ${Number(ratio.toPrecision(2))} ${ratio > 1 ? "times that" : "of it"}`;
  };
  const line = (value, { unit, measured, formula }) => {
    if (typeof measured === "string")
      return `you said ${value} · measured: ${measured}`;
    const guess = numberIn(value, unit);
    const said = (x) => `${readable(x)} ${unit}`.trim();
    const parts = [`you said ${said(guess)}`];
    if (formula !== null) parts.push(`the formula says ${said(formula)}`);
    const end = verdict(guess, measured);
    return [...parts, `measured ${said(measured)}${end && ": " + end}`].join(" · ");
  };

  const compare = (key, value) => {
    for (const shown of document.querySelectorAll(".distlab-compared[data-result]"))
      if (shown.dataset.guess === key)
        shown.textContent = line(value, JSON.parse(atob(shown.dataset.result)));
  };

  const upgrade = (form) => {
    const { guess, unit } = form.dataset;
    const field = form.querySelector("input[type=text]");
    const said = form.querySelector("[role=status]");
    const show = (value) => {
      said.textContent = `You said ${value}. `;
      form.querySelector("button").textContent = "Change my guess";
      compare(guess, value);
    };
    const given = () => (field || form.querySelector(":checked"))?.value.trim() ?? "";
    const keep = () => {
      const value = given();
      if (!value) said.textContent = field ? "Write a number first." : "Choose one first.";
      else if (tell({ to: form.id, value })) window.distlabFocus = form.id;
      else if (!isPage) said.textContent = "Run this cell, then keep your guess.";
      else if (field && !Number.isFinite(numberIn(value, unit)))
        said.textContent = `${value} is not a number: write one such as 7, 1e3 or 2/3.`;
      else show(stored(guess, value));
    };
    // The notebook has its own plans for most keys: x would cut the cell.
    form.onkeydown = (event) => event.stopPropagation();
    form.addEventListener("beforeinput", (e) => e.stopPropagation(), { capture: true });
    form.onsubmit = (event) => {
      event.preventDefault();
      event.stopPropagation();
      keep();
    };
    if (window.distlabFocus === form.id) form.querySelector("button").focus();
    const kept = isPage && stored(guess);
    if (kept && !given()) {
      if (field) field.value = kept;
      for (const box of form.querySelectorAll("input[type=radio]"))
        box.checked = box.value === kept;
    }
    if (kept) show(kept);
  };

  for (const form of document.querySelectorAll("form.distlab-guess:not([data-ready])")) {
    form.dataset.ready = "";
    upgrade(form);
  }
  for (const shown of document.querySelectorAll(".distlab-compared[data-result]")) {
    const kept = isPage && stored(shown.dataset.guess);
    if (kept) compare(shown.dataset.guess, kept);
  }
})();
