"""The player: making its page, its size, its first frame and its frames per second.

The peer is matplotlib's own way to put an animation into a notebook, to_jshtml, with
one picture per stop and nothing on it but the ranks. Run: python tests/bench/player.py
"""

import shutil
import tempfile
import time
from pathlib import Path

from distlab import Event, Trace, follow, show
from distlab.collectives import ring_all_reduce
from distlab.show.assets import document

_FRAMES_JS = """async () => {
  const counted = await new Promise(done => {
    let frames = 0; const began = performance.now();
    const next = now => now - began > 2000 ? done(frames / (now - began) * 1000)
      : (frames++, requestAnimationFrame(next));
    requestAnimationFrame(next);
  });
  return counted;
}"""


def ring_trace(ranks, rounds):
    """Return the trace of a ring that goes round for `rounds` steps of 1 ms."""
    events = []
    for k in range(rounds):
        for rank in range(ranks):
            start, end = k + 0.1 * (rank % 3), k + 0.9
            pair = ("send", (rank + 1) % ranks), ("recv", (rank - 1) % ranks)
            for kind, peer in pair:
                times = start * 1e-3, end * 1e-3
                events.append(Event(rank, *times, kind, peer, 40, k + 1, ""))
    return Trace(ranks, events)


def milliseconds(fn, times=5):
    """Return the shortest of a few calls, and what the last returned."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        result = fn()
        taken.append(time.perf_counter() - began)
    return 1000 * min(taken), result


def matplotlib_animation(ranks, stops):
    """Return the peer's HTML: dots on a circle, a frame for each stop."""
    import math

    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.2, 5))
    ax = figure.add_subplot()
    angles = [2 * math.pi * rank / ranks for rank in range(ranks)]
    xs, ys = [math.cos(a) for a in angles], [math.sin(a) for a in angles]
    ax.plot(xs, ys, "o", markersize=20)
    moving = ax.plot(xs, ys, "s")[0]

    def at(number):
        moving.set_data([x * (1 + 0.01 * number) for x in xs], ys)
        return [moving]

    return FuncAnimation(figure, at, frames=stops + 1).to_jshtml()


def in_browser(page, path):
    """Return ms to the first frame, and frames per second of each view."""
    page.goto(path.as_uri())
    page.wait_for_selector("[data-ready]")
    first = page.evaluate(
        "Number(document.querySelector('[data-ready]').dataset.ready)"
    )
    rates = []
    for key in "123":
        page.focus(".distlab-player")
        page.keyboard.press("Home")
        page.keyboard.press(key)
        page.keyboard.press(" ")
        rates.append(page.evaluate(_FRAMES_JS))
        page.keyboard.press(" ")
    return first, rates


def main():
    """Print both tables."""
    ring = follow(ring_all_reduce, 8)
    ours_ms, ours = milliseconds(lambda: show.player(ring).html())
    theirs_ms, theirs = milliseconds(lambda: matplotlib_animation(8, 14), 1)
    print(f"{'8-rank ring, 14 stops':28}{'ms':>9}{'kB':>8}")
    print(f"{'player':28}{ours_ms:9.1f}{len(ours) / 1e3:8.0f}")
    print(f"{'matplotlib to_jshtml':28}{theirs_ms:9.1f}{len(theirs) / 1e3:8.0f}")
    times, sizes = theirs_ms / ours_ms, len(theirs) / len(ours)
    print(f"ratio {times:.0f} in time, {sizes:.1f} in size\n")
    traces = {"8-rank ring": ring.trace}
    traces |= {f"{n * 16:,} events": ring_trace(8, n) for n in (62, 625, 6250)}
    print(f"{'':16}{'ms/1000 events':>15}{'kB':>8}{'first ms':>10}{'fps by view':>24}")
    pages = {}
    folder = Path(tempfile.mkdtemp())
    for name, trace in traces.items():
        spent_ms, html = milliseconds(lambda t=trace: show.player(t).html(), 2)
        path = folder / f"{len(pages)}.html"
        path.write_text(document(html, name))
        pages[name] = (1000 * spent_ms / len(trace), len(html) / 1e3, path)
    try:
        _table_in_browser(pages)
    finally:
        shutil.rmtree(folder)


def _table_in_browser(pages):
    chromium = shutil.which("chromium")
    if not chromium:
        print("no chromium: apt-get install chromium, for the columns of the browser")
    for name, (cost_ms, size, path) in pages.items():
        row = f"{name:16}{cost_ms:15.1f}{size:8.0f}"
        if chromium:
            first, rates = _measured(chromium, path)
            row += f"{first:10.0f}" + "".join(f"{rate:8.0f}" for rate in rates)
        print(row)


def _measured(chromium, path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = {"executable_path": chromium, "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        try:
            return in_browser(browser.new_page(), path)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
