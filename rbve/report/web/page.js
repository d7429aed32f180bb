// Brings the page to life: figures, long tables, plain tables, where in the contents one is, print.

const figures = new Map([...document.querySelectorAll("figure.chart")].map((f) => [f, new FigureView(f)]));
for (const place of document.querySelectorAll(".filter-table")) longTable(place);
for (const table of document.querySelectorAll("table.filterable")) plainTable(table);

// A page has many figures: each is drawn when it comes near.
const coming = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
    coming.unobserve(target);
    if (!figures.get(target).drawn) figures.get(target).draw();
  }
}, { rootMargin: "600px" });
for (const figure of figures.keys()) coming.observe(figure);

const links = new Map(
  [...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]),
);
const headings = [...document.querySelectorAll("main h2[id]")];

const nav = document.querySelector("nav.contents");

/** The contents stay in sight in as many lines as they need: headings stop below them. */
function makeRoom() {
  document.documentElement.style.scrollPaddingTop = `${nav.offsetHeight + 8}px`;
}

function follow() {
  const edge = nav.offsetHeight + 70;
  const passed = headings.filter((heading) => heading.getBoundingClientRect().top < edge);
  const here = links.get((passed.at(-1) || headings[0] || {}).id);
  for (const link of links.values()) {
    if (link === here && !link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const list = link.closest("ul");
      list.scrollLeft = link.offsetLeft - list.clientWidth / 3;
    } else if (link !== here) link.removeAttribute("aria-current");
  }
}

if (links.size) {
  addEventListener("scroll", follow, { passive: true });
  new ResizeObserver(makeRoom).observe(nav);
  follow();
}

// Paper cannot be opened: what is folded is printed, but for numbers and choices.
let opened = [];
addEventListener("beforeprint", () => {
  for (const each of figures.values()) if (!each.drawn) each.draw();
  opened = [...document.querySelectorAll("details:not([open], .numbers, .rows)")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of opened) each.open = false;
});
