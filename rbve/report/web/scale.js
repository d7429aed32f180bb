// Axes and numbers. A place on an axis is a share from 0 (low end) to 1 (high end).

const MAX_DECADES = 33; // from SMALL to the 10³⁰ that values not finite count as
const SMALL = -3; // log₁₀: errors below a thousandth are as good as 0
const SIGNED_SMALL = -2; // of both signs, lest the way through 0 takes all the room

function shows(value, scale) {
  if (scale === "category") return value !== null;
  return typeof value === "number" && (scale !== "log" || value > 0);
}

/** Range, ticks and places of an axis of numbers. `count`: ticks there is room for. */
class Axis {
  constructor(found, scale, count, pad = 0.05) {
    const known = found.filter((value) => shows(value, scale));
    this.scale = scale;
    if (scale === "log") this.logarithmic(known, count);
    else if (scale === "symlog") this.symlog(known, count);
    else this.linear(known, count, pad);
  }

  linear(known, count, pad) {
    let low = known.length ? Math.min(...known) : 0;
    let high = known.length ? Math.max(...known) : 1;
    const equal = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    const room = equal ? 0.1 * Math.abs(high) || 0.5 : pad * (high - low);
    [this.low, this.high] = [low - room, high + room];
    this.ticks = steps(this.low, this.high, count);
    this.word = thousands;
  }

  logarithmic(known, count) {
    const low = Math.log10(known.length ? Math.min(...known) : 1);
    const high = Math.log10(known.length ? Math.max(...known) : 10);
    const room = 0.07 * (high - low) || 0.5;
    [this.low, this.high] = [10 ** Math.max(low - room, -307), 10 ** Math.min(high + room, 307)];
    const values = [...new Set(known)].sort((a, b) => a - b);
    if (values.length <= 8) {
      this.ticks = this.apart(values);
      this.word = thousands;
      return;
    }
    const [first, last] = [Math.ceil(low - room), Math.floor(high + room)];
    const every = Math.max(1, Math.ceil((last - first) / Math.max(1, count)));
    this.ticks = [];
    for (let k = first; k <= last; k += every) this.ticks.push(10 ** k);
    this.word = power;
    if (this.ticks.length > 1) return;
    this.ticks = steps(this.low, this.high, count); // less than two powers of ten
    this.word = thousands;
  }

  /** Of a few values, those far enough from one another for their labels. */
  apart(values) {
    const kept = [];
    for (const value of [...values].reverse()) {
      if (!kept.length || this.at(kept.at(-1)) - this.at(value) >= 0.1) kept.push(value);
    }
    return kept.reverse();
  }

  /** Begins at 0; where values are negative it goes on below, as far as they do. */
  symlog(known, count) {
    const sizes = known.map(Math.abs).filter((size) => size > 0);
    const [low, high] = [-Math.min(0, ...known), Math.max(0, ...known)];
    const signed = low > 0;
    const top = Math.ceil(Math.log10(sizes.length ? Math.max(...sizes) : 1) - 1e-9);
    const small = Math.floor(Math.log10(sizes.length ? Math.min(...sizes) : 1) + 1e-9);
    const least = signed ? SIGNED_SMALL : SMALL;
    const bottom = Math.min(Math.max(small, top - MAX_DECADES, least), top - 1);
    this.threshold = 10 ** bottom;
    const every = Math.ceil((top - bottom) / Math.max(1, Math.min(6, signed ? count / 2 : count - 1)));
    const powers = [];
    for (let k = top; k >= bottom; k -= every) powers.unshift(10 ** k);
    const needed = (end) => powers.filter((p) => p < 10 ** every * end * (1 - 1e-9));
    const [below, above] = signed ? [needed(low), needed(high)] : [[], powers];
    const edge = (ticks) => (ticks.length ? ticks.at(-1) * 10 ** 0.1 : 0.2 * this.threshold);
    [this.low, this.high] = [-edge(below), edge(above)];
    const clear = (p) => Math.abs(this.at(p) - this.at(0)) > 0.075; // of the label of 0
    this.ticks = [...below.map((p) => -p).reverse().filter(clear), 0, ...above.filter(clear)];
    this.word = power;
  }

  flat(value) {
    if (this.scale === "log") return Math.log10(value);
    if (this.scale !== "symlog") return value;
    const size = Math.abs(value) / this.threshold;
    return Math.sign(value) * (size <= 1 ? size / 2 : 0.5 + Math.log10(size));
  }

  at(value) {
    const low = this.flat(this.low);
    return (this.flat(value) - low) / (this.flat(this.high) - low);
  }
}

/** Round numbers between two ends. */
function steps(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 2.5, 5, 10].find((size) => size * unit >= rough * (1 - 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function plain(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

function thousands(value) {
  for (const [size, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return plain(value / size) + sign;
  }
  return plain(value);
}

/** 10⁻³ in plain characters. */
function power(value) {
  if (value === 0) return "0";
  if (value < 0) return `−${power(-value)}`;
  const exponent = Math.round(Math.log10(value));
  if (exponent >= -2 && exponent <= 3) return plain(value);
  return `10${[...String(exponent)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
}

/** A measured number for tooltips and tables. */
function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) {
    return value.toExponential(2).replace("e+", "e").replace(/-/g, "−");
  }
  const places = Number.isInteger(value) || size >= 1000 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  const options = { maximumFractionDigits: Math.min(places, 8) };
  return value.toLocaleString("en-US", options).replace("-", "−");
}

/** A colour for a dark page: mixed with white until it stands out; black turns nearly white. */
function onDark(colour) {
  const parts = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  const contrast = luminance(parts) < 0.03 ? 12 : 4.5;
  for (let share = 0; share <= 1; share += 0.05) {
    const mixed = parts.map((part) => Math.round(part + (255 - part) * share));
    if ((luminance(mixed) + 0.05) / (luminance([0x1f, 0x1f, 0x23]) + 0.05) >= contrast) {
      return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    }
  }
  return "#ffffff";
}

function luminance(parts) {
  const [r, g, b] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
