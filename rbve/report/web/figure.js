// Figures (rbve/report/figure.py): drawn by Vega, with a legend, a tooltip and keys.

const HELP = "Arrow keys: left and right along a series, up and down between series; Escape ends.";

class FigureView {
  constructor(figure) {
    this.content = JSON.parse(figure.querySelector("script").textContent);
    const { fields, rows, spec } = this.content;
    this.rows = rows.map((cells, id) => ({ id, ...Object.fromEntries(fields.map((f, k) => [f, cells[k]])) }));
    this.specs = spec.concat || [spec];
    this.hidden = new Set();
    this.views = [];
    this.stage = figure.querySelector(".stage");
    this.stage.style.minHeight = `${this.height(this.specs[0], 0) + 60}px`; // until it is drawn
    this.place = html("div", { class: "views" });
    this.ring = html("div", { class: "ring", hidden: "hidden" });
    this.tip = html("div", { class: "tip", "aria-hidden": "true", hidden: "hidden" });
    this.spoken = html("p", { class: "aside", "aria-live": "polite" });
    this.stage.append(this.place, this.ring, this.tip, this.spoken);
    this.stage.setAttribute("aria-label", `${this.stage.getAttribute("aria-label")} ${HELP}`);
    this.fillLegend(figure.querySelector(".legend"));
    this.listen();
  }

  async draw() {
    this.drawn = true;
    this.leave();
    const options = {
      mode: "vega-lite", renderer: "svg", config: THEME.config, actions: false, tooltip: false,
      hover: false, defaultStyle: false, logLevel: 1, // errors
    };
    const cells = this.specs.map(() => html("div", { class: "view" }));
    this.place.replaceChildren(...cells);
    const made = await Promise.all(this.specs.map((spec, k) => vegaEmbed(cells[k], {
      ...spec,
      width: "container",
      height: this.height(spec, k),
      autosize: { type: "fit-x", contains: "padding" },
      data: { values: this.rows.filter((row) => (row.k ?? k) === k).map((row) => ({ ...row })) },
      params: [{ name: "hidden", value: [...this.hidden] }, { name: "card", value: THEME.card }],
    }, options)));
    this.views.forEach((view) => view.finalize());
    this.views = made.map(({ view }) => view);
    this.stage.style.minHeight = "";
    this.stage.dataset.drawn = "yes";
  }

  /** Pixels; as many rows as there are in the legend's choice. */
  height(spec, k) {
    const shown = this.rows.filter((row) => (row.k ?? k) === k && !this.hidden.has(row.series));
    return spec.height.step ? spec.height.step * Math.max(1, new Set(shown.map((row) => row.place)).size) : spec.height;
  }

  // Legend

  fillLegend(place) {
    if (!place) return;
    this.buttons = this.content.legend.map((entry) => this.entry(entry));
    this.all = html("button", { type: "button", class: "all", hidden: "hidden" }, "show all");
    this.all.addEventListener("click", () => this.show(new Set()));
    place.append(...this.buttons, this.all);
  }

  entry({ name, colour, line, dash, ring, strong }) {
    const stroke = { x1: 1, x2: 25, y1: 6, y2: 6, "stroke-dasharray": THEME.dashes[dash % 4] };
    const swatch = svg("svg", { width: 26, height: 12, "aria-hidden": "true" },
      ...(line ? [svg("line", stroke)] : []),
      svg("circle", { cx: 13, cy: 6, r: 4, class: ring ? "hollow" : "" }));
    const button = html("button", {
      type: "button",
      "aria-pressed": "true",
      class: strong ? "strong" : "",
      title: "Click: show or hide. Double-click, Alt-click or O: only this.",
    }, swatch, name);
    button.dataset.name = name;
    button.style.setProperty("--own", colour);
    button.addEventListener("click", (event) => (event.altKey ? this.only(name) : this.toggle(name)));
    button.addEventListener("dblclick", () => this.only(name));
    button.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() === "o" && !event.ctrlKey && !event.metaKey) this.only(name);
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
    this.leave();
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.name)));
    }
    if (this.all === document.activeElement) this.buttons[0].focus();
    this.all.hidden = hidden.size === 0;
    if (this.specs[0].height.step) this.draw();
    else this.views.forEach((view) => view.signal("hidden", [...hidden]).run());
  }

  // Tooltip

  /** Where the rows are drawn, in pixels of the stage. */
  hits() {
    const stage = this.stage.getBoundingClientRect();
    const hit = (mark, panel) => {
      const { left, top, width, height } = mark.getBoundingClientRect();
      const [x, y] = [left - stage.left, top - stage.top];
      const row = this.rows[mark.__data__.datum.id];
      return { panel, row, box: [x, y, x + width, y + height], x: x + width / 2, y: y + height / 2 };
    };
    return [...this.place.children].flatMap((cell, panel) =>
      [...cell.querySelectorAll("g[class*=' points'] > *")].map((mark) => hit(mark, panel)))
      .sort((a, b) => a.row.id - b.row.id);
  }

  listen() {
    this.stage.addEventListener("pointermove", (event) => this.near(event));
    this.stage.addEventListener("pointerdown", (event) => this.near(event));
    this.stage.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.leave();
    });
    this.stage.addEventListener("blur", () => this.leave());
    this.stage.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") return this.leave();
      const next = this.next(event.key);
      if (next === undefined) return;
      event.preventDefault();
      if (next) this.enter(next, true);
    });
  }

  /** The point nearest to the pointer, if it is near at all; in rows the height decides. */
  near(event) {
    const box = this.stage.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const across = this.specs[0].height?.step ? 0.15 : 1;
    let [best, least] = [null, 40 ** 2];
    for (const hit of this.hits()) {
      const [x1, y1, x2, y2] = hit.box;
      const far = across * Math.max(x1 - x, 0, x - x2) ** 2 + Math.max(y1 - y, 0, y - y2) ** 2;
      if (far < least) [best, least] = [hit, far];
    }
    if (best) this.enter(best, false);
    else this.leave();
  }

  enter(hit, aloud) {
    this.current = hit;
    const lines = this.words(hit.row);
    Object.assign(this.ring.style, { left: `${hit.x}px`, top: `${hit.y}px` });
    this.tip.replaceChildren(html("b", {}, lines[0]), ...lines.slice(1).map((line) => html("div", {}, line)));
    this.tip.hidden = this.ring.hidden = false;
    const room = this.stage.clientWidth - this.tip.offsetWidth;
    const above = hit.y - this.tip.offsetHeight - 14;
    this.tip.style.left = `${Math.max(0, Math.min(hit.x - this.tip.offsetWidth / 2, room))}px`;
    this.tip.style.top = `${above > -30 ? above : hit.y + 14}px`;
    if (aloud) this.spoken.textContent = lines.join(", ");
  }

  leave() {
    this.current = null;
    this.tip.hidden = this.ring.hidden = true;
  }

  /** What is told of a row: its series, where it is, its number with the interval, n. */
  words(row) {
    const { columns } = this.content;
    const bare = ["series", "panel"].map((field) => (field in columns ? row[field] : ""));
    const told = Object.entries(columns).filter(([field]) =>
      !["series", "panel", "low", "high", "n", "note"].includes(field) && row[field] !== row.series);
    const lines = told.map(([field, heading]) => {
      const range = field === "y" && row.low != null ? ` [${number(row.low)}, ${number(row.high)}]` : "";
      return heading === "row" ? number(row[field]) : `${heading}: ${number(row[field])}${range}`;
    });
    return [...bare, ...lines, row.n ? `n = ${row.n}` : "", row.note].filter(Boolean);
  }

  // Keys

  /** The point an arrow key leads to; null at an end, undefined for other keys. */
  next(key) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
    const hits = this.hits();
    if (key === "Home") return hits[0] || null;
    if (key === "End") return hits.at(-1) || null;
    if (!(key in steps)) return undefined;
    if (!this.current) return hits[0] || null;
    const { panel, row, x, y } = this.current;
    const here = hits.filter((hit) => hit.panel === panel);
    const names = [...new Set(here.map((hit) => hit.row.series))];
    if (key === "ArrowRight" || key === "ArrowLeft" || names.length < 2) {
      const own = hits.filter((hit) => hit.row.series === row.series);
      return own[own.findIndex((hit) => hit.row.id === row.id) + steps[key]] || null;
    }
    const name = names[names.indexOf(row.series) + steps[key]];
    const far = (hit) => (this.specs[0].height?.step ? Math.abs(hit.y - y) : Math.abs(hit.x - x));
    return here.filter((hit) => hit.row.series === name)
      .reduce((best, hit) => (best && far(best) <= far(hit) ? best : hit), null);
  }
}
