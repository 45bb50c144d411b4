// What is taller or wider than its slide is made smaller until it fits.
const fit = () => {
  const body = Reveal.getCurrentSlide()?.querySelector(".fits");
  if (!body) return;
  const slides = document.querySelector(".slides").getBoundingClientRect();
  const fits = () =>
    body.getBoundingClientRect().bottom <= slides.bottom &&
    body.scrollWidth <= body.clientWidth + 1;
  for (let zoom = 1; zoom >= 0.3; zoom -= 0.05) {
    body.style.zoom = zoom;
    if (fits()) return;
  }
};
Reveal.initialize({
  width: 1280, height: 720, margin: 0.02, center: false, hash: true, controls: false,
  slideNumber: "c/t", transition: "none", plugins: [RevealNotes],
}).then(fit);
for (const event of ["slidechanged", "resize"]) Reveal.on(event, fit);
// A player in focus keeps its keys; a click beside it gives them back to the slides.
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".distlab-player")) document.activeElement?.blur();
});
