// One series of one panel: line or row dots, intervals, single runs; and where its points lie.

function drawLine(view, place, series, order, own) {
  const { panel, axis } = place;
  const longest = Math.max(0, ...panel.series.map((s) => s.points.length));
  const banded = longest > (view.chart.x.scale === "linear" ? 2 : MANY);
  const shift = banded ? 0 : dodge(view, order, panel.series.length);
  const at = ([x, y]) => [xPlace(view, x) + shift, (1 - axis.at(y)) * view.tall];
  const shown = ([x, y]) =>
    shows(x, view.chart.x.scale) && shows(y, view.chart.y.scale);
  for (const member of series.members.filter(shown)) own.append(circle(...at(member), 2.4, "member"));
  for (const part of unbroken(series.points, shown)) {
    if (banded) own.append(band(part, at));
    else part.forEach((point) => interval(own, series, at, point, view.chart.y.scale));
    const path = part.map((point) => at(point).map((v) => v.toFixed(1)).join(" ")).join("L");
    own.append(svg("path", { class: "line", d: `M${path}`, "stroke-dasharray": DASHES[series.dash % 4] }));
  }
  series.points.forEach((point, k) => {
    if (!shown(point)) return;
    const [x, y] = at(point);
    const alone = series.points.filter(shown).length === 1;
    if (longest <= MANY || point[5] || alone) own.append(dot(x, y, series));
    hit(view, place, series, k, x, y);
  });
}

function xPlace(view, x) {
  if (view.xAxis) return view.xAxis.at(x) * view.plot;
  return ((view.categories.indexOf(String(x)) + 0.5) * view.plot) / view.categories.length;
}

/** Pixels to the side, so that intervals of several series at one x can be told apart. */
function dodge(view, order, count) {
  const steps = order - (count - 1) / 2;
  if (view.xAxis) return steps * 2.2;
  return steps * Math.min(12, (0.7 * view.plot) / view.categories.length / count);
}

/** Pieces of a line between points that have no place. */
function unbroken(points, shown) {
  const parts = [[]];
  for (const point of points) {
    if (shown(point)) parts.at(-1).push(point);
    else parts.push([]);
  }
  return parts.filter((part) => part.length);
}

function band(part, at) {
  const edge = (k) => part.map((p) => at([p[0], p[k] === null ? p[1] : p[k]]).map((v) => v.toFixed(1)).join(" "));
  return svg("path", { class: "band", d: `M${edge(3).join("L")}L${edge(2).reverse().join("L")}Z` });
}

function interval(own, series, at, [x, y, low, high], scale) {
  if (low === null || high === null) return;
  const ends = [low, high].map((value) => at([x, shows(value, scale) ? value : y]));
  own.append(rule(...ends[0], ...ends[1], "bar"));
}

function drawRows(view, place, series, order, own) {
  const { panel, axis } = place;
  const sharing = owners(panel);
  const center = (name) => {
    const names = sharing.get(String(name));
    const slot = (names.indexOf(series.name) + 0.5) / names.length - 0.5;
    return (view.categories.indexOf(String(name)) + 0.5 + 0.8 * slot) * view.row;
  };
  const scale = view.chart.y.scale;
  const seen = new Map();
  for (const [name, value] of series.members) {
    const before = seen.get(name) || 0;
    seen.set(name, before + 1);
    if (!shows(value, scale)) continue;
    const offset = ((before % 5) - 2) * 1.9; // so that equals stay apart
    own.append(circle(axis.at(value) * view.plot, center(name) + offset, 2.6, "member"));
  }
  series.points.forEach((point, k) => {
    if (!shows(point[1], scale)) return;
    const y = center(point[0]);
    const at = ([, value]) => [axis.at(value) * view.plot, y];
    interval(own, series, at, point, scale);
    const [x] = at(point);
    own.append(dot(x, y, series, 4.6));
    hit(view, place, series, k, x, y);
  });
}

function circle(cx, cy, r, kind) {
  return svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r, class: kind });
}

function dot(x, y, series, size = series.strong ? 4 : 3.4) {
  return circle(x, y, size, series.marker === "ring" ? "dot ring" : "dot");
}

function hit(view, place, series, order, x, y) {
  const row = view.rows ? view.categories.indexOf(String(series.points[order][0])) : 0;
  view.hits.push({ panel: place.index, series, order, row, x: place.x + x, y: place.y + y });
}
