// What figures and tables share: elements, numbers in words.

const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== "") element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A measured number in few digits; as `in_words` in figure.py. */
function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) {
    return value.toExponential(2).replace("e+", "e").replace(/-/g, "−");
  }
  const places = Number.isInteger(value) || size >= 1000 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  const options = { maximumFractionDigits: Math.min(places, 8) };
  return value.toLocaleString("en-US", options).replace("-", "−");
}
