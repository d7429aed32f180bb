// Brings the page to life: charts, long tables, plain tables, where in the contents one is, print.

const charts = [...document.querySelectorAll("figure.chart")].map((figure) => new ChartView(figure));
for (const place of document.querySelectorAll(".filter-table")) new LongTable(place);
for (const table of document.querySelectorAll("table.filterable")) enhance(table);

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

// Paper cannot be opened: what is folded is printed, but for the numbers and choices of charts.
const PAPER = 1000; // pixels across a page on its side
let opened = [];
addEventListener("beforeprint", () => {
  for (const chart of charts) chart.draw(true, PAPER);
  opened = [...document.querySelectorAll("details:not([open], .numbers, .rows)")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  for (const chart of charts) chart.draw(true);
  for (const each of opened) each.open = false;
});
