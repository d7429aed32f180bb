// Tables with search, filters and sorting: long ones drawn from data, and plain ones of the page.

const PAGE_ROWS = 50; // of a long table
const counted = (value) => value.toLocaleString("en-US");
const collator = new Intl.Collator("en", { numeric: true });

/** Numbers by size, texts by their words and numbers, what is missing last. */
function compare(first, second, direction) {
  const [none, other] = [first, second].map((cell) => cell === null || cell === "");
  if (none || other) return Number(none) - Number(other);
  const both = typeof first === "number" && typeof second === "number";
  return direction * (both ? first - second : collator.compare(String(first), String(second)));
}

/** Search box, a list of choices per filtered column, headers that sort, pages of a long table. */
class FilterTable {
  /** rows: arrays of cells; words: the text of each that is searched; lines(k): <tr>s of a row. */
  constructor(table, { name, caption, filters, rows, words, lines, size = Infinity }) {
    Object.assign(this, { rows, lines, size, page: 0, words: words.map((text) => text.toLowerCase()) });
    this.body = table.tBodies[0];
    this.headers = [...table.tHead.querySelectorAll("th")];
    const columns = this.headers.map((header) => header.textContent.trim());
    this.headers.forEach((header, column) => this.sortBy(header, column));
    this.search = html("input", { type: "search", id: `${name}-search` });
    this.search.addEventListener("input", () => this.update());
    this.lists = filters.map((filter) => this.list(columns.indexOf(filter), name));
    this.count = html("output", { class: "count", "aria-live": "polite" });
    this.bar = html("div", { class: "controls", role: "search", "aria-label": `Filter: ${caption}` },
      html("label", { for: this.search.id }, "Search ", this.search),
      ...this.lists.map(({ select }, k) => html("label", { for: select.id }, `${filters[k]} `, select)),
      this.count);
    this.pages = html("nav", { class: "pages", "aria-label": `Pages: ${caption}` });
    const region = table.closest(".scroll") || table;
    region.before(this.bar);
    region.after(this.pages);
    this.update();
  }

  list(column, name) {
    const values = [...new Set(this.rows.map((row) => row[column]))].sort((a, b) => compare(a, b, 1));
    const options = values.map((value) => html("option", {}, value === null ? "–" : String(value)));
    const select = html("select", { id: `${name}-by-${column}` }, html("option", {}, "all"), ...options);
    select.addEventListener("change", () => this.update());
    return { select, fits: (row) => select.selectedIndex === 0 || row[column] === values[select.selectedIndex - 1] };
  }

  /** A header becomes a button. */
  sortBy(header, column) {
    const button = html("button", { type: "button" }, ...header.childNodes);
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const direction = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      this.headers.forEach((each) => each.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      this.order = (a, b) => compare(this.rows[a][column], this.rows[b][column], direction) || a - b;
      this.update();
    });
  }

  /** Which rows are shown, in order. */
  update() {
    const wanted = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = [...this.rows.keys()].filter((k) =>
      wanted.every((word) => this.words[k].includes(word)) && this.lists.every((list) => list.fits(this.rows[k])));
    if (this.order) this.shown.sort(this.order);
    this.count.textContent = `${counted(this.shown.length)} of ${counted(this.rows.length)}`;
    this.turn(0);
  }

  turn(page) {
    const start = page * this.size || 0;
    const end = Math.min(start + this.size, this.shown.length);
    const none = html("tr", {}, html("td", { colspan: this.headers.length + 1, class: "text" }, "No row fits."));
    this.body.replaceChildren(...(end ? this.shown.slice(start, end).flatMap(this.lines) : [none]));
    const last = Math.max(0, Math.ceil(this.shown.length / this.size) - 1);
    this.pages.hidden = last === 0;
    const button = (text, goal, off) => {
      const made = html("button", { type: "button" }, text);
      made.disabled = off;
      made.addEventListener("click", () => {
        this.turn(goal);
        const again = [...this.pages.querySelectorAll("button:enabled")];
        (again.find((each) => each.textContent === text) || again[0]).focus();
      });
      return made;
    };
    this.pages.replaceChildren(
      button("first", 0, page === 0), button("previous", page - 1, page === 0),
      html("span", {}, `rows ${counted(start + 1)} to ${counted(end)} of ${counted(this.shown.length)}`),
      button("next", page + 1, page === last), button("last", last, page === last));
  }
}

/** A table of which only a page of rows is in the document; its data: `filter_table` of render.py. */
async function longTable(place) {
  const { columns, filters, rows, details } = await unpacked(place.querySelector("script").textContent);
  const { caption } = place.dataset;
  const kinds = columns.map((_, k) => (rows.some((row) => typeof row[k] === "number") ? "" : "text"));
  const corner = details ? [html("td", { class: "opener" })] : [];
  const headers = columns.map((name, k) => html("th", { scope: "col", class: kinds[k] }, name));
  const table = html("table", { class: "long" }, html("caption", { class: "aside" }, caption),
    html("thead", {}, html("tr", {}, ...corner, ...headers)), html("tbody"));
  place.append(html("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Table: ${caption}` }, table));

  /** A row; its details join it while it is open. */
  const made = (k) => {
    const row = html("tr", {}, ...rows[k].map((cell, c) => html("td", { class: kinds[c] }, number(cell))));
    const lines = [row];
    if (!details) return lines;
    const button = html("button", { type: "button", "aria-expanded": "false", "aria-label": `Details of row ${k + 1}` }, "+");
    row.prepend(html("td", { class: "opener" }, button));
    button.addEventListener("click", () => {
      const open = lines.length === 1;
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "−" : "+";
      if (open) row.after(lines[lines.push(detailsLine(details[k], columns.length + 1)) - 1]);
      else lines.pop().remove();
    });
    return lines;
  };
  const known = [];
  const words = rows.map((row) => row.map((cell) => cell ?? "").join(" "));
  const lines = (k) => (known[k] ??= made(k));
  new FilterTable(table, { name: place.id, caption, filters, rows, words, lines, size: PAGE_ROWS });
  place.dataset.drawn = "yes";
}

function detailsLine(content, columns) {
  const parts = content !== null && typeof content === "object" && !Array.isArray(content) ?
    Object.entries(content) : [["", content]];
  const shown = parts.flatMap(([name, value]) => [
    ...(name ? [html("h4", {}, name)] : []),
    html("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 1)),
  ]);
  const cell = html("td", { colspan: columns, class: "text" }, html("div", { class: "detail" }, ...shown));
  return html("tr", { class: "details" }, cell);
}

/** JSON that was compressed and written in base64. */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** A table that is whole without scripts. */
function plainTable(table) {
  const { caption = "table", filters = "" } = table.dataset;
  const lines = [...table.tBodies[0].rows];
  new FilterTable(table, {
    name: table.id || `table-${[...document.querySelectorAll("table")].indexOf(table)}`,
    caption,
    filters: filters.split(",").map((name) => name.trim()).filter(Boolean),
    rows: lines.map((line) => [...line.cells].map((cell) => cellValue(cell.textContent.trim()))),
    words: lines.map((line) => line.textContent),
    lines: (k) => [lines[k]],
  });
}

function cellValue(text) {
  const plainText = text.replace(/,(?=\d{3})/g, "").replace(/−/g, "-");
  return text !== "" && Number.isFinite(Number(plainText)) ? Number(plainText) : text;
}
