// Brings the page to life: charts, long tables, plain tables, where in the contents one is.

for (const figure of document.querySelectorAll("figure.chart")) new ChartView(figure);
for (const place of document.querySelectorAll(".filter-table")) new LongTable(place);
for (const table of document.querySelectorAll("table.filterable")) enhance(table);

const links = new Map(
  [...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]),
);
const headings = [...document.querySelectorAll("main h2[id]")];

function follow() {
  const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
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
  follow();
}
