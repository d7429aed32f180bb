// Draws a chart (rbve/report/chart.py) as one SVG as wide as its place. Words only as text nodes.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "6 2.5", "2.5 2.5", "7 2.5 2 2.5"];
const MANY = 12; // points of a line from which on dots are left out
const LINE = 15; // pixels per line of labels
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== "") element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  ruler.font = FONT;
  return ruler.measureText(text).width;
}

/** Words in lines no wider than `width`; what does not fit into `most` lines is cut. */
function wrap(text, width, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (!lines.at(-1) || textWidth(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const kept = lines.slice(0, most).map((line) => cut(line, width));
  if (lines.length > most) kept[most - 1] = cut(`${kept[most - 1]} …`, width);
  return kept;
}

function cut(text, width) {
  if (textWidth(text) <= width) return text;
  let end = text.length;
  while (end > 1 && textWidth(`${text.slice(0, end)}…`) > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** `panels`: those of the chart with the series that are switched on. */
function drawChart(chart, panels, width) {
  const view = { chart, panels, width, hits: [] };
  view.rows = chart.kind === "rows";
  view.categories = chart.x.scale === "category" || view.rows ? categories(panels) : [];
  measure(view);
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${view.height}`,
    width,
    height: view.height,
    role: "img",
    "aria-label": `${chart.title}. ${chart.note}`,
  });
  panels.forEach((panel, index) => root.append(drawPanel(view, panel, index)));
  view.root = root;
  return view;
}

function categories(panels) {
  const every = panels.flatMap((panel) => panel.series.flatMap((s) => [...s.points, ...s.members]));
  return [...new Set(every.map(([x]) => String(x)))];
}

function yValues(panel) {
  const drawn = panel.series.flatMap((s) => [
    ...s.points.flatMap(([, y, low, high]) => [y, low, high]),
    ...s.members.map(([, y]) => y),
  ]);
  return [...drawn, ...panel.marks.map(([value]) => value)];
}

function xValues(panels) {
  return panels.flatMap((p) => p.series.flatMap((s) => [...s.points, ...s.members].map(([x]) => x)));
}

/** Columns, sizes and axes that all panels share. */
function measure(view) {
  const { chart, panels, width, rows } = view;
  const count = panels.length;
  const least = rows ? 160 : 270; // pixels of a panel
  const names = rows ? Math.min(190, width * 0.38, widest(view.categories) + 12) : 0;
  let columns = Math.max(1, Math.min(count, 3, Math.floor((width - names) / least)));
  columns = Math.ceil(count / Math.ceil(count / columns));
  const values = panels.map(yValues);
  const common = chart.y.same ? values.flat() : null;
  view.columns = columns;
  view.first = rows ? names : 58;
  view.gap = rows || chart.y.same ? 18 : 46;
  view.plot = (width - view.first - 14 - (columns - 1) * view.gap) / columns;
  view.yAxes = values.map(
    (own) => new Axis(common || own, chart.y.scale, rows ? Math.floor(view.plot / 52) : 5),
  );
  const xs = xValues(panels);
  if (!rows && chart.x.scale !== "category") {
    const pad = new Set(xs).size > MANY ? 0.02 : 0.07;
    view.xAxis = new Axis(xs, chart.x.scale, Math.floor(view.plot / 75), pad);
  }
  view.levels = rows ? panels.map((panel, k) => markLevels(view, panel, k)) : panels.map(() => []);
  heights(view);
}

function widest(names) {
  return Math.max(0, ...names.map(textWidth));
}

function heights(view) {
  const { chart, panels, rows } = view;
  if (rows) {
    view.labels = view.categories.map((name) => wrap(name, view.first - 10, 3));
    const lines = Math.max(1, ...view.labels.map((label) => label.length));
    const slots = Math.max(1, ...panels.map((panel) => most(owners(panel))));
    view.row = Math.max(23, 13 * slots + 4, 14 * lines + 6);
    view.tall = Math.max(1, view.categories.length) * view.row + 6;
  } else {
    view.tall = Math.round(Math.min(320, Math.max(180, view.plot * 0.6)));
  }
  const titled = panels.some((panel) => panel.title);
  view.above = (titled ? 24 : 8) + Math.max(0, ...view.levels.map((l) => l.length)) * LINE;
  view.axisWords = rows ? wrap(chart.y.label, view.plot, 3) : wrap(chart.x.label, view.plot, 2);
  view.slant = !rows && !view.xAxis && widest(view.categories.flatMap((n) => n.split(" "))) >
    view.plot / Math.max(1, view.categories.length) - 4;
  view.below = 26 + (view.axisWords[0] ? view.axisWords.length * LINE : 0) + categoryRoom(view);
  view.height = Math.ceil(panels.length / view.columns) * (view.above + view.tall + view.below);
}

/** Pixels that names of categories below a panel need beyond one line. */
function categoryRoom(view) {
  if (view.rows || view.xAxis) return 0;
  if (view.slant) return Math.min(120, widest(view.categories) * 0.6) + 4;
  const each = view.plot / Math.max(1, view.categories.length) - 4;
  return (Math.max(1, ...view.categories.map((name) => wrap(name, each, 3).length)) - 1) * 13;
}

/** row -> names of the series that have something in it. */
function owners(panel) {
  const found = new Map();
  for (const series of panel.series) {
    for (const x of new Set([...series.points, ...series.members].map(([name]) => String(name)))) {
      found.set(x, [...(found.get(x) || []), series.name]);
    }
  }
  return found;
}

function most(found) {
  return Math.max(1, ...[...found.values()].map((names) => names.length));
}

/** Names of vertical lines by level above the panel, so that they stay apart. */
function markLevels(view, panel, index) {
  const levels = [];
  for (const [value, name] of [...panel.marks].sort((a, b) => a[0] - b[0])) {
    const half = textWidth(name) / 2 + 4;
    const wanted = view.yAxes[index].at(value) * view.plot;
    const at = Math.min(Math.max(wanted, half), Math.max(view.plot - half, half));
    let level = levels.findIndex((placed) => placed.at(-1).end <= at - half);
    if (level < 0) level = levels.push([]) - 1;
    levels[level].push({ at, end: at + half, name });
  }
  return levels;
}

function drawPanel(view, panel, index) {
  const column = index % view.columns;
  const x = view.first + column * (view.plot + view.gap);
  const y = Math.floor(index / view.columns) * (view.above + view.tall + view.below) + view.above;
  const group = svg("g", { class: "panel", transform: `translate(${x} ${y})` });
  const place = { panel, index, group, x, y, firstColumn: column === 0, axis: view.yAxes[index] };
  if (panel.title) {
    const top = 14 - view.above;
    group.append(label(0, top, cut(panel.title, view.plot), "panel-title"));
  }
  (view.rows ? rowAxes : lineAxes)(view, place);
  if (!panel.series.some((s) => s.points.length + s.members.length)) {
    group.append(label(view.plot / 2, view.tall / 2, "no data", "mark-name", "middle"));
  }
  const ordered = panel.series.map((series, order) => ({ series, order }));
  ordered.sort((a, b) => Number(a.series.strong) - Number(b.series.strong));
  for (const { series, order } of ordered) {
    const own = svg("g", { class: series.strong ? "series strong" : "series" });
    own.dataset.name = series.name;
    own.style.setProperty("--light", series.colour);
    own.style.setProperty("--dark", onDark(series.colour));
    (view.rows ? drawRows : drawLine)(view, place, series, order, own);
    group.append(own);
  }
  if (!view.rows) nameLines(view, place);
  return group;
}

function label(x, y, text, kind, anchor = "start") {
  return svg("text", { x, y, class: kind, "text-anchor": anchor }, text);
}

function rule(x1, y1, x2, y2, kind) {
  return svg("line", { x1, y1, x2, y2, class: kind });
}

function below(view, group, words) {
  words.forEach((text, k) =>
    group.append(label(view.plot / 2, view.tall + view.below - 10 - (words.length - 1 - k) * LINE, text,
      "axis-name", "middle")));
}

function rowAxes(view, { panel, index, group, firstColumn, axis }) {
  view.categories.forEach((name, k) => {
    const y = (k + 0.5) * view.row;
    group.append(rule(0, y, view.plot, y, "grid"));
    if (!firstColumn) return;
    const strong = panel.series.find((s) => s.name === name && s.strong);
    view.labels[k].forEach((text, line, all) => {
      const at = y + 4 + (line - (all.length - 1) / 2) * 14;
      group.append(label(-10, at, text, strong ? "row-name strong" : "row-name", "end"));
    });
  });
  group.append(rule(0, view.tall, view.plot, view.tall, "axis"));
  for (const tick of axis.ticks) {
    const x = axis.at(tick) * view.plot;
    group.append(rule(x, view.tall, x, view.tall + 4, "axis"));
    group.append(label(x, view.tall + 17, axis.word(tick), "tick", "middle"));
  }
  for (const [value] of panel.marks) {
    const x = axis.at(value) * view.plot;
    group.append(rule(x, 0, x, view.tall, "mark"));
  }
  view.levels[index].forEach((placed, level) =>
    placed.forEach(({ at, name }) =>
      group.append(label(at, -5 - level * LINE, name, "mark-name", "middle"))));
  below(view, group, view.axisWords);
}

function lineAxes(view, { panel, group, firstColumn, axis }) {
  const { chart } = view;
  for (const tick of axis.ticks) {
    const y = (1 - axis.at(tick)) * view.tall;
    group.append(rule(0, y, view.plot, y, "grid"));
    if (firstColumn || !chart.y.same) group.append(label(-6, y + 4, axis.word(tick), "tick", "end"));
  }
  if (firstColumn) {
    const name = label(0, 0, cut(chart.y.label, view.tall + 20), "axis-name", "middle");
    name.setAttribute("transform", `translate(${12 - view.first} ${view.tall / 2}) rotate(-90)`);
    group.append(name);
  }
  group.append(rule(0, view.tall, view.plot, view.tall, "axis"), rule(0, 0, 0, view.tall, "axis"));
  if (view.xAxis) {
    for (const tick of view.xAxis.ticks) {
      const x = view.xAxis.at(tick) * view.plot;
      group.append(rule(x, view.tall, x, view.tall + 4, "axis"));
      group.append(label(x, view.tall + 17, view.xAxis.word(tick), "tick", "middle"));
    }
  } else categoryNames(view, group);
  for (const [value] of panel.marks) {
    const y = (1 - axis.at(value)) * view.tall;
    group.append(rule(0, y, view.plot, y, "mark"));
  }
  below(view, group, view.axisWords);
}

function categoryNames(view, group) {
  const each = view.plot / view.categories.length;
  view.categories.forEach((name, k) => {
    const x = (k + 0.5) * each;
    if (view.slant) {
      const text = label(0, 0, cut(name, 190), "tick", "end");
      text.setAttribute("transform", `translate(${x + 4} ${view.tall + 14}) rotate(-35)`);
      group.append(text);
      return;
    }
    wrap(name, each - 4, 3).forEach((line, n) =>
      group.append(label(x, view.tall + 17 + n * 13, line, "tick", "middle")));
  });
}

/** Names of horizontal marks above their lines at the right, moved apart where they meet. */
function nameLines(view, { panel, group, axis }) {
  let last = Infinity;
  for (const [value, name] of [...panel.marks].sort((a, b) => a[0] - b[0])) {
    last = Math.min((1 - axis.at(value)) * view.tall - 4, last - 13);
    group.append(label(view.plot - 2, last, name, "mark-name", "end"));
  }
}
