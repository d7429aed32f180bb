// Tables with search, filters and sorting: long ones drawn from data, and plain ones of the page.

const PAGE_ROWS = 50;
const counted = (value) => value.toLocaleString("en-US");
const collator = new Intl.Collator("en", { numeric: true });

/** Numbers by size, texts by their words and numbers, what is missing last. */
function compare(first, second, direction) {
  const [none, other] = [first, second].map((cell) => cell === null || cell === "");
  if (none || other) return Number(none) - Number(other);
  const both = typeof first === "number" && typeof second === "number";
  return direction * (both ? first - second : collator.compare(String(first), String(second)));
}

/** Search box, a list of choices per filtered column, the count; sorting through the headers. */
class Controls {
  /** rows: arrays of cells; words: the text of each row that is searched, in lower case. */
  constructor({ name, columns, filters, rows, words, caption, changed }) {
    Object.assign(this, { columns, filters, rows, words, changed });
    this.sorted = { column: -1, direction: 1 };
    this.search = html("input", { type: "search", id: `${name}-search` });
    this.count = html("output", { class: "count", "aria-live": "polite" });
    this.lists = filters.map((column) => this.list(column, `${name}-by-${columns.indexOf(column)}`));
    this.bar = html("div", { class: "controls", role: "search", "aria-label": `Filter: ${caption}` },
      html("label", { for: this.search.id }, "Search ", this.search),
      ...this.lists.map((list, k) => html("label", { for: list.id }, `${filters[k]} `, list)),
      this.count);
    this.search.addEventListener("input", () => this.update());
  }

  list(column, id) {
    const values = [...new Set(this.rows.map((row) => row[this.columns.indexOf(column)]))];
    values.sort((a, b) => compare(a, b, 1));
    const options = values.map((value) => html("option", {}, value === null ? "–" : String(value)));
    const list = html("select", { id }, html("option", {}, "all"), ...options);
    list.choices = values;
    list.addEventListener("change", () => this.update());
    return list;
  }

  /** Headers become buttons that sort. */
  sortBy(headers) {
    this.headers = headers;
    headers.forEach((header, column) => {
      const button = html("button", { type: "button" }, ...header.childNodes);
      header.replaceChildren(button);
      button.addEventListener("click", () => {
        const { column: last, direction } = this.sorted;
        this.sorted = { column, direction: column === last ? -direction : 1 };
        headers.forEach((each) => each.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", this.sorted.direction > 0 ? "ascending" : "descending");
        this.update();
      });
    });
  }

  /** Indices of the rows to show, in order. */
  update() {
    const wanted = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = this.lists.flatMap((list, k) => list.selectedIndex === 0 ? [] :
      [[this.columns.indexOf(this.filters[k]), list.choices[list.selectedIndex - 1]]]);
    const shown = this.rows.map((_, k) => k).filter((k) =>
      wanted.every((word) => this.words[k].includes(word)) &&
      chosen.every(([column, value]) => this.rows[k][column] === value));
    const { column, direction } = this.sorted;
    if (column >= 0) shown.sort((a, b) => compare(this.rows[a][column], this.rows[b][column], direction) || a - b);
    this.count.textContent = `${counted(shown.length)} of ${counted(this.rows.length)}`;
    this.changed(shown);
  }
}

/** A table of which only a page of rows is in the document; see filter_table.py. */
class LongTable {
  constructor(place) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const columns = data.columns.map((column) => column.name);
    const cells = data.columns.map((c) => c.cells || c.at.map((k) => c.values[k]));
    const rows = Array.from({ length: data.count }, (_, k) => cells.map((column) => column[k]));
    Object.assign(this, { data, columns, rows, page: 0, opened: new Set() });
    this.numeric = cells.map((column) => column.some((cell) => typeof cell === "number"));
    const caption = place.dataset.caption;
    this.controls = new Controls({
      name: place.id, columns, filters: data.filters, rows, caption,
      words: rows.map((row) => row.map((cell) => String(cell ?? "")).join(" ").toLowerCase()),
      changed: (shown) => { this.shown = shown; this.page = 0; this.draw(); },
    });
    const headers = columns.map((name, k) =>
      html("th", { scope: "col", class: this.numeric[k] ? "" : "text" }, name));
    this.controls.sortBy(headers);
    const corner = data.details ? [html("td", { class: "opener" })] : [];
    this.body = html("tbody");
    const table = html("table", { class: "long" }, html("caption", { class: "aside" }, caption),
      html("thead", {}, html("tr", {}, ...corner, ...headers)), this.body);
    this.pages = html("nav", { class: "pages", "aria-label": `Pages: ${caption}` });
    const region = { class: "scroll", role: "region", tabindex: "0", "aria-label": `Table: ${caption}` };
    place.append(this.controls.bar, html("div", region, table), this.pages);
    this.controls.update();
  }

  draw() {
    const start = this.page * PAGE_ROWS;
    this.body.replaceChildren(...this.shown.slice(start, start + PAGE_ROWS).flatMap((k) => this.lines(k)));
    if (!this.shown.length) {
      const cell = html("td", { colspan: this.columns.length + 1, class: "text" }, "No row fits.");
      this.body.append(html("tr", {}, cell));
    }
    const last = Math.max(0, Math.ceil(this.shown.length / PAGE_ROWS) - 1);
    this.pages.hidden = last === 0;
    const end = Math.min(start + PAGE_ROWS, this.shown.length);
    const turn = (text, page, off) => {
      const button = html("button", { type: "button" }, text);
      button.disabled = off;
      button.addEventListener("click", () => {
        this.page = page;
        this.draw();
        const again = [...this.pages.querySelectorAll("button")].find((b) => b.textContent === text && !b.disabled);
        (again || this.pages.querySelector("button:enabled")).focus();
      });
      return button;
    };
    this.pages.replaceChildren(
      turn("first", 0, this.page === 0), turn("previous", this.page - 1, this.page === 0),
      html("span", {}, `rows ${counted(start + 1)} to ${counted(end)} of ${counted(this.shown.length)}`),
      turn("next", this.page + 1, this.page === last), turn("last", last, this.page === last));
  }

  /** A row and, where it is open, its details. */
  lines(k) {
    const cells = this.rows[k].map((cell, c) => html("td", { class: this.numeric[c] ? "" : "text" }, number(cell)));
    if (!this.data.details) return [html("tr", {}, ...cells)];
    const open = this.opened.has(k);
    const button = html("button", {
      type: "button", "aria-expanded": String(open), "aria-label": `Details of row ${k + 1}`,
    }, open ? "−" : "+");
    const row = html("tr", {}, html("td", { class: "opener" }, button), ...cells);
    button.addEventListener("click", () => {
      const now = !this.opened.delete(k) && Boolean(this.opened.add(k));
      button.setAttribute("aria-expanded", String(now));
      button.textContent = now ? "−" : "+";
      if (now) row.after(this.details(k));
      else row.nextSibling.remove();
    });
    return open ? [row, this.details(k)] : [row];
  }

  details(k) {
    const whole = merged(this.data.common, this.data.details[k]);
    const parts = whole !== null && typeof whole === "object" && !Array.isArray(whole) ?
      Object.entries(whole) : [["", whole]];
    const shown = parts.flatMap(([name, value]) => [
      ...(name ? [html("h4", {}, name)] : []),
      html("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 1)),
    ]);
    const cell = html("td", { colspan: this.columns.length + 1, class: "text" }, html("div", { class: "detail" }, ...shown));
    return html("tr", { class: "details" }, cell);
  }
}

/** What all rows have in common, and the row's own beside or inside it. */
function merged(common, own) {
  const nested = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  if (!nested(common) || !nested(own)) return own === undefined ? common : own;
  const whole = {};
  for (const key of new Set([...Object.keys(own), ...Object.keys(common)])) {
    whole[key] = key in common ? merged(common[key], own[key]) : own[key];
  }
  return whole;
}

/** A table that is whole without scripts gets the same controls; its rows are hidden, not removed. */
function enhance(table, index) {
  const headers = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const lines = [...body.rows];
  const columns = headers.map((header) => header.textContent.trim());
  const rows = lines.map((line) => [...line.cells].map((cell) => cellValue(cell.textContent.trim())));
  const controls = new Controls({
    name: table.id || `table-${[...document.querySelectorAll("table")].indexOf(table)}`,
    columns, rows, caption: table.dataset.caption || "table",
    filters: (table.dataset.filters || "").split(",").map((name) => name.trim()).filter((name) => columns.includes(name)),
    words: lines.map((line) => line.textContent.toLowerCase()),
    changed: (shown) => {
      const kept = new Set(shown);
      lines.forEach((line, k) => { line.hidden = !kept.has(k); });
      body.append(...shown.map((k) => lines[k]));
    },
  });
  controls.sortBy(headers);
  (table.closest(".scroll") || table).before(controls.bar);
  controls.update();
}

function cellValue(text) {
  const plainText = text.replace(/,(?=\d{3})/g, "").replace(/−/g, "-");
  return text !== "" && Number.isFinite(Number(plainText)) ? Number(plainText) : text;
}
