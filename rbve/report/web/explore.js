// A chart in the page: legend, tooltip, keys, the table of its numbers.

const HELP = {
  lines: "Arrow keys: left and right along a line, up and down between lines; Escape ends.",
  rows: "Arrow keys: up and down between rows, left and right between panels; Escape ends.",
};

class ChartView {
  constructor(figure) {
    this.chart = JSON.parse(figure.querySelector("script").textContent);
    this.figure = figure;
    this.hidden = new Set();
    this.current = null; // the point the tooltip speaks of
    this.drawing = html("div", {
      class: "drawing",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      "aria-label": `${this.chart.title}. ${HELP[this.chart.kind]}`,
    });
    this.tip = html("div", { class: "tip", "aria-hidden": "true", hidden: "hidden" });
    this.spoken = html("p", { class: "aside", "aria-live": "polite" });
    this.legend = html("div", { class: "legend", role: "group", "aria-label": "Series" });
    this.fillLegend();
    const stage = html("div", { class: "stage" }, this.drawing, this.tip);
    const files = figure.querySelector(".files"); // last
    figure.append(this.folded(this.legend), stage, this.spoken, this.numbers(), ...(files ? [files] : []));
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.drawing);
  }

  /** As wide as its place, or as said. */
  draw(always = false, width = Math.floor(this.drawing.clientWidth)) {
    if (width < 40 || (!always && width === this.width)) return;
    this.width = width;
    const panels = this.chart.panels.map((panel) => ({
      ...panel,
      series: panel.series.filter((series) => !this.hidden.has(series.name)),
    }));
    this.view = drawChart(this.chart, panels, width);
    this.ring = svg("circle", { class: "ring-here", r: 8, visibility: "hidden" });
    this.view.root.append(this.ring);
    this.drawing.replaceChildren(this.view.root);
    this.leave();
  }

  // Legend

  fillLegend() {
    const names = new Map();
    for (const series of this.chart.panels.flatMap((panel) => panel.series)) {
      if (!names.has(series.name)) names.set(series.name, series);
    }
    if (names.size < 2) return;
    this.buttons = [...names.values()].map((series) => this.entry(series));
    this.all = html("button", { type: "button", class: "all", hidden: "hidden" }, "show all");
    this.all.addEventListener("click", () => this.show(new Set()));
    this.legend.append(...this.buttons, this.all);
  }

  /** Rows that carry the names of their series need no legend in sight. */
  folded(legend) {
    const points = this.chart.panels.flatMap((panel) => panel.series.flatMap((s) => s.points.map(([x]) => [x, s.name])));
    if (this.chart.kind !== "rows" || !this.buttons || points.some(([x, name]) => x !== name)) return legend;
    return html("details", { class: "rows" }, html("summary", {}, `Choose rows (${this.buttons.length})`), legend);
  }

  entry(series) {
    const line = { x1: 1, x2: 25, y1: 6, y2: 6, class: "line", "stroke-dasharray": DASHES[series.dash % 4] };
    const parts = this.chart.kind === "lines" ? [svg("line", line)] : [];
    const mark = svg("g", { class: "series" }, ...parts, dot(13, 6, series, 4));
    const swatch = svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, mark);
    const button = html("button", {
      type: "button",
      "aria-pressed": "true",
      class: series.strong ? "strong" : "",
      title: "Click: show or hide. Double-click, Alt-click or O: only this.",
    }, swatch, series.name);
    button.dataset.name = series.name;
    button.style.setProperty("--light", series.colour);
    button.style.setProperty("--dark", onDark(series.colour));
    button.addEventListener("click", (event) =>
      event.altKey ? this.only(series.name) : this.toggle(series.name));
    button.addEventListener("dblclick", () => this.only(series.name));
    button.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() === "o" && !event.ctrlKey && !event.metaKey) this.only(series.name);
    });
    return button;
  }

  toggle(name) {
    const hidden = new Set(this.hidden);
    if (!hidden.delete(name)) hidden.add(name);
    this.show(hidden);
  }

  /** This series alone; all of them where it was alone already. */
  only(name) {
    const others = this.buttons.map((button) => button.dataset.name).filter((each) => each !== name);
    const alone = !this.hidden.has(name) && others.every((each) => this.hidden.has(each));
    this.show(new Set(alone ? [] : others));
  }

  show(hidden) {
    this.hidden = hidden;
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.name)));
    }
    if (this.all === document.activeElement) this.buttons[0].focus();
    this.all.hidden = hidden.size === 0;
    this.draw(true);
  }

  // Tooltip

  listen() {
    const near = (event) => {
      const box = this.view.root.getBoundingClientRect();
      const scale = this.view.width / box.width;
      this.point((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    };
    this.drawing.addEventListener("pointermove", near);
    this.drawing.addEventListener("pointerdown", near);
    this.drawing.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.leave();
    });
    this.drawing.addEventListener("blur", () => this.leave());
    this.drawing.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") return this.leave();
      const next = this.next(event.key);
      if (next === undefined) return;
      event.preventDefault();
      if (next) this.enter(next, true);
    });
  }

  /** The point nearest to the pointer, if it is near at all. */
  point(x, y) {
    let best = null;
    let least = 40 ** 2;
    for (const hit of this.view.hits) {
      const far = this.view.rows ? 0.15 : 1; // rows: the height decides
      const distance = far * (hit.x - x) ** 2 + (hit.y - y) ** 2;
      if (distance < least) [best, least] = [hit, distance];
    }
    if (best) this.enter(best, false);
    else this.leave();
  }

  enter(hit, aloud) {
    this.current = hit;
    this.ring.setAttribute("cx", hit.x);
    this.ring.setAttribute("cy", hit.y);
    this.ring.setAttribute("visibility", "visible");
    const words = this.words(hit);
    this.tip.replaceChildren(html("b", {}, words[0]), ...words.slice(1).map((line) => html("div", {}, line)));
    this.tip.hidden = false;
    const scale = this.view.root.getBoundingClientRect().width / this.view.width;
    const left = Math.min(Math.max(hit.x * scale - this.tip.offsetWidth / 2, 0), this.width - this.tip.offsetWidth);
    const above = hit.y * scale - this.tip.offsetHeight - 14;
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${above > -30 ? above : hit.y * scale + 14}px`;
    if (aloud) this.spoken.textContent = words.join(", ");
  }

  leave() {
    this.current = null;
    this.tip.hidden = true;
    if (this.ring) this.ring.setAttribute("visibility", "hidden");
  }

  words({ panel, series, order }) {
    const { chart } = this;
    const [x, y, low, high, n, note] = series.points[order];
    const lines = [series.name];
    if (chart.panels[panel].title) lines.push(chart.panels[panel].title);
    if (String(x) !== series.name) lines.push(chart.x.label ? `${chart.x.label}: ${number(x)}` : number(x));
    const range = low === null || high === null ? "" : ` [${number(low)}, ${number(high)}]`;
    lines.push(`${chart.y.label}: ${number(y)}${range}`);
    if (n) lines.push(`n = ${n}`);
    if (note) lines.push(note);
    return lines;
  }

  // Keys

  /** The point an arrow key leads to; null at an end, undefined for other keys. */
  next(key) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const { hits, rows } = this.view;
    if (key === "Home") return hits[0] || null;
    if (key === "End") return hits.at(-1) || null;
    if (!(key in steps)) return undefined;
    if (!this.current) return this.sorted(hits)[0] || null;
    const [across, down] = steps[key];
    if (rows) return across ? this.beside(across) : this.along(this.sorted(this.here()), down);
    return across ? this.along(this.sorted(hits.filter((h) => h.series.name === this.current.series.name)), across)
      : this.between(down);
  }

  here() {
    return this.view.hits.filter((hit) => hit.panel === this.current.panel);
  }

  sorted(hits) {
    const order = this.view.rows ? (h) => [h.panel, h.y, h.x] : (h) => [h.panel, this.rank(h), h.x];
    return [...hits].sort((a, b) => {
      const [first, second] = [order(a), order(b)];
      const differs = first.findIndex((value, k) => value !== second[k]);
      return differs < 0 ? 0 : first[differs] - second[differs];
    });
  }

  rank(hit) {
    return this.chart.panels[hit.panel].series.findIndex((s) => s.name === hit.series.name);
  }

  along(hits, step) {
    return hits[hits.indexOf(this.current) + step] || null;
  }

  /** The neighbouring line, at the nearest x. */
  between(step) {
    const ranks = [...new Set(this.here().map((hit) => this.rank(hit)))].sort((a, b) => a - b);
    const rank = ranks[ranks.indexOf(this.rank(this.current)) + step];
    return nearest(this.here().filter((hit) => this.rank(hit) === rank), (hit) => hit.x - this.current.x);
  }

  /** The same row of the panel before or after. */
  beside(step) {
    const panels = [...new Set(this.view.hits.map((hit) => hit.panel))].sort((a, b) => a - b);
    const panel = panels[panels.indexOf(this.current.panel) + step];
    const there = this.view.hits.filter((hit) => hit.panel === panel);
    const same = there.filter((hit) => hit.series.name === this.current.series.name);
    return nearest(same.length ? same : there, (hit) => hit.row - this.current.row);
  }

  // Numbers

  numbers() {
    const points = this.chart.panels.reduce((sum, p) => sum + p.series.reduce((s, e) => s + e.points.length, 0), 0);
    const details = html("details", { class: "numbers" }, html("summary", {}, `Numbers (${points})`));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(this.table());
    });
    return details;
  }

  table() {
    const { chart } = this;
    const titled = chart.panels.some((panel) => panel.title);
    const head = [...(titled ? ["panel"] : []), "series", chart.x.label || "row", chart.y.label, "low", "high", "n", "note"];
    const lines = chart.panels.flatMap((panel) => panel.series.flatMap((series) => series.points.map((point) =>
      [...(titled ? [panel.title] : []), series.name, ...point.slice(0, 4).map(number), point[4] || "", point[5]])));
    const cells = (line) => html("tr", {}, ...line.map((cell) => html("td", {}, String(cell))));
    const columns = html("tr", {}, ...head.map((name) => html("th", { scope: "col" }, name)));
    const table = html("table", {}, html("thead", {}, columns), html("tbody", {}, ...lines.map(cells)));
    const region = { class: "scroll", role: "region", tabindex: "0", "aria-label": `Numbers: ${chart.title}` };
    return html("div", region, table);
  }
}

function nearest(hits, difference) {
  return hits.reduce((best, hit) =>
    best && Math.abs(difference(best)) <= Math.abs(difference(hit)) ? best : hit, null);
}
