"use strict";
// Elements, pictures, numbers. All text from the plan becomes text nodes, never
// markup.
const data = JSON.parse(document.getElementById("data").textContent);

/// Names may hold characters that hide, or that turn the reading direction.
function shown(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

function setAll(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  for (const child of children)
    node.append(child instanceof Node ? child : shown(child));
  return node;
}
const make = (tag, attributes = {}, ...children) =>
  setAll(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  setAll(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const tip = (text) => draw("title", {}, text);
const picture = (width, height, ...children) =>
  draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" }, ...children);
const label = (x, y, text, attributes = {}) => draw("text", { x, y, ...attributes }, text);

/// At most `letters` of a text; the rest is in its tooltip.
function cut(text, letters) {
  const all = shown(text);
  return all.length <= letters ? all : all.slice(0, Math.max(letters - 1, 1)) + "…";
}

/// Three digits that count, with the largest unit that keeps them above 1.
function scaled(number, base, units) {
  let unit = 0;
  while (Math.abs(number) >= base && unit + 1 < units.length) {
    number /= base;
    ++unit;
  }
  const digits = unit === 0 && Number.isInteger(number) ? 0 : Math.abs(number) < 10 ? 2 : Math.abs(number) < 100 ? 1 : 0;
  return (number.toFixed(digits) + " " + units[unit]).trim();
}
const bytes = (count) => scaled(count, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const count = (number) => scaled(number, 1000, ["", "k", "M", "G", "T", "P", "E", "Z"]);
const percent = (part) => (100 * part).toFixed(1) + " %";
function time(us) {
  if (us === 0) return "0";
  if (us < 1e3) return us.toPrecision(3) + " µs";
  return us < 1e6 ? (us / 1e3).toPrecision(3) + " ms" : us < 1e9 ? (us / 1e6).toPrecision(3) + " s" : Math.round(us / 1e6) + " s";
}
const counted = (number, word) => number + " " + word + (number === 1 ? "" : "s");

const colours = {
  weights: "#4c78a8", gradients: "#f58518", optimizer: "#54a24b", activations: "#e45756", communication: "#b279a2",
  workspace: "#9d755d", input: "#72b7b2", constants: "#bab0ac", results: "#eeca3b",
  all_reduce: "#e45756", all_gather: "#4c78a8", reduce_scatter: "#f58518", all_to_all: "#54a24b", permute: "#72b7b2",
  send: "#b279a2", F: "#9ecbff", B: "#9fdfb0", I: "#7fd6d0", W: "#ffd08a", step: "#c9ced6", update: "#d9b3e6",
};
const spare = ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d", "#72b7b2", "#eeca3b"];
/// Not what every object has, like "constructor".
const known = (words, key) => (Object.hasOwn(words, key) ? words[key] : undefined);
const colour = (key, index = 0) => known(colours, key) || spare[index % spare.length];

const legend = (entries) => make("div", { class: "legend" },
  ...entries.map(([key, text]) => make("span", {}, make("i", { style: `background:${colour(key)}` }), text)));

/// A few round numbers from 0 to `most`.
function ticks(least, most, base = 10) {
  const span = most - least || 1;
  let step = base === 2 ? 2 ** Math.floor(Math.log2(span / 4)) : 10 ** Math.floor(Math.log10(span / 4));
  if (base === 10)
    for (const more of [2, 2.5, 2])
      if (span / step > 6) step *= more;
  if (base === 2) while (span / step > 6) step *= 2;
  const list = [];
  for (let at = Math.ceil(least / step) * step; at <= most * (1 + 1e-9) && list.length < 20; at += step) list.push(at);
  return list;
}

function section(id, title, ...children) {
  const made = make("section", { id }, make("h2", {}, title), ...children);
  document.querySelector("main").append(made);
  document.getElementById("contents").append(make("a", { href: "#" + id }, title));
  return made;
}
const note = (...text) => make("p", { class: "note" }, ...text);

/// A choice among many, drawn anew at each change.
function choice(names, render, first = 0) {
  const place = make("div");
  const redraw = (index) => place.replaceChildren(render(index));
  redraw(first);
  if (names.length < 2) return place;
  const select = make("select", { onchange: (event) => redraw(Number(event.target.value)) },
    ...names.map((name, index) => make("option", { value: index }, cut(name, 80))));
  select.value = String(first);
  return make("div", {}, select, place);
}
