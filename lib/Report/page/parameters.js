// How parameters are split: a table, and a picture of the one that is chosen.
const sizeOf = new Map(data.explain.mesh.map((axis) => [axis.axis, axis.size]));

/// "dp, tp" of a dim's axes; parts is the product of their sizes.
const partsOf = (axes) => axes.reduce((all, axis) => all * (sizeOf.get(axis.split(" in ")[0]) || 1), 1);

function splitText(state) {
  const dims = (state.split || []).map((axes, dim) => axes.length ? `dim ${dim} over ${axes.join(", ")}` : "").filter(Boolean);
  return dims.length ? dims.join("; ") : "whole on each rank";
}

/// "0: tp; 1: dp": dims and the axes that split them.
function shortSplit(state) {
  const dims = (state.split || []).map((axes, dim) => axes.length ? `${dim}: ${axes.join(", ")}` : "").filter(Boolean);
  return dims.length ? dims.join("; ") : "whole";
}

/// The two dims to draw: what is split, then what is last.
function drawnDims(split) {
  const dims = split.map((_, dim) => dim).sort((a, b) => (partsOf(split[b]) > 1) - (partsOf(split[a]) > 1) || b - a);
  const [rows, columns] = dims.slice(0, 2).sort((a, b) => a - b);
  return columns === undefined ? [-1, rows] : [rows, columns];
}

/// A tensor as a box with the cuts of two of its dims.
function box(parameter, state) {
  const shape = parameter.shape.length ? parameter.shape : [1];
  const split = shape.map((_, dim) => (state.split && state.split[dim]) || []);
  const [rows, columns] = drawnDims(split), most = Math.max(...shape), scale = (size) => 50 + 130 * Math.sqrt(size / most);
  const wide = scale(shape[columns]), high = rows < 0 ? 34 : scale(shape[rows]), left = 1, top = 22;
  const drawn = (dim) => (dim < 0 ? 1 : Math.min(partsOf(split[dim]), 32));
  const across = [...Array(drawn(columns)).keys()].slice(1).map((i) => left + wide * i / drawn(columns));
  const down = [...Array(drawn(rows)).keys()].slice(1).map((i) => top + high * i / drawn(rows));
  const side = (dim) => `dim ${dim}: ${shape[dim]}${split[dim].length ? ` over ${split[dim].join(", ")} = ${partsOf(split[dim])}` : ""}`;
  return picture(Math.max(left + wide + 20, 300), top + high + 24,
    draw("rect", { x: left, y: top, width: wide, height: high, fill: "#eef3fa", stroke: "#8a97a8" }),
    draw("rect", { x: left, y: top, width: wide / drawn(columns), height: high / drawn(rows), fill: "#9ecbff" }, tip("the part of the first rank")),
    draw("g", { stroke: "#8a97a8", "stroke-width": 0.7 }, ...across.map((x) => draw("line", { x1: x, x2: x, y1: top, y2: top + high })),
      ...down.map((y) => draw("line", { x1: left, x2: left + wide, y1: y, y2: y }))),
    label(left, top - 8, side(columns) + " →"), rows >= 0 ? label(left, top + high + 16, side(rows) + " ↓") : "");
}

/// States that are split alike are one picture.
function parameterDetail(parameter) {
  const alike = new Map();
  for (const state of parameter.states) {
    const key = splitText(state) + (state.type || "").replace(/^\w*/, "");
    alike.set(key, [...(alike.get(key) || []), state]);
  }
  const pictures = [...alike.values()].map((states) => make("div", {},
    make("b", {}, states.map((one) => one.state.replaceAll("_", " ")).join(", ")), box(parameter, states[0]),
    make("div", {}, `${[...new Set(states.map((one) => one.type))].join(", ")}: ${splitText(states[0])}`)));
  return make("div", {}, make("h3", { class: "name" }, parameter.name),
    note(`${counted(parameter.count, "parameter")} of [${parameter.shape.join(", ")}]; the dark part is what one rank holds. At most 32 parts of a dim are drawn.`),
    make("div", { class: "pictures" }, ...pictures));
}

/// "0-3, 6" of 0, 1, 2, 3, 6.
function ranges(numbers) {
  const runs = [];
  for (const one of numbers)
    if (runs.length && runs[runs.length - 1][1] === one - 1) runs[runs.length - 1][1] = one;
    else runs.push([one, one]);
  return runs.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(", ");
}

function showParameters() {
  const place = make("div");
  const pick = (parameter) => () => place.replaceChildren(parameterDetail(parameter));
  const byState = (parameter, name) => {
    const state = parameter.states.find((one) => one.state === name);
    return state ? shortSplit(state) : null;
  };
  const many = data.explain.programs > 1;
  const rows = data.parameters.map((one) => {
    const weight = one.states.find((state) => state.state === "weight") || one.states[0] || {};
    const kept = one.states.find((state) => !["weight", "gradient"].includes(state.state));
    return [make("button", { class: "name", onclick: pick(one) }, one.name), String(one.count), `[${one.shape.join(", ")}]`, weight.type || null,
      byState(one, "weight"), byState(one, "gradient"), kept ? shortSplit(kept) : null, ...(many ? [ranges(one.programs)] : [])];
  });
  section("shardings", "Shardings of parameters",
    note("Parameters of repeated layers are one row, with * for the layer. “1: tp” says that tp splits dim 1; what is whole is on each rank. Choose a name for a picture."),
    table(["parameter", ">how many", "=shape", "=on a rank", "=weight", "=gradient", "=optimizer's states", ...(many ? ["programs"] : [])], rows), place);
  const first = data.parameters.find((one) => one.states.some((state) => (state.split || []).some((axes) => axes.length))) || data.parameters[0];
  if (first) pick(first)();
}
