// Memory over the step, by kind.
const meanings = {
  weights: "what matmuls read", gradients: "sums of a step", optimizer: "f32 masters, what the optimizer keeps",
  activations: "kept for the backward pass, and passed on", communication: "staging of collectives", workspace: "scratch of an instruction",
  input: "tokens and targets", constants: "tables filled once", results: "loss, norm, metrics",
};

/// "backward of stage 3", or "B3", or nothing.
function fitting(name, letters) {
  const kinds = { forward: "F", backward: "B", input_grad: "I", weight_grad: "W" };
  const [, kind, stage] = /^(\w+)(?: of stage (\d+))?$/.exec(name) || [];
  const short = kinds[kind] ? kinds[kind] + (stage || "") : "";
  return name.length <= letters ? name : short && short.length <= letters ? short : "";
}

function memoryPicture(program) {
  const left = 76, top = 8, wide = 1100, high = 280, kinds = Object.keys(program.bytes);
  const columns = program.instructions.length, most = Math.max(program.fullest_bytes, 1);
  const x = (column) => left + wide * column / columns, y = (sum) => top + high * (1 - sum / most);
  const sums = new Array(columns).fill(0);
  const areas = kinds.map((kind) => {
    let above = "", below = "";
    program.bytes[kind].forEach((value, column) => {
      const under = y(sums[column]).toFixed(1);
      sums[column] += value;
      const over = y(sums[column]).toFixed(1), from = x(column).toFixed(1), to = x(column + 1).toFixed(1);
      above += `L${from} ${over}L${to} ${over}`;
      below = `L${to} ${under}L${from} ${under}` + below;
    });
    return draw("path", { d: "M" + (above + below).slice(1) + "Z", fill: colour(kind) }, tip(kind));
  });
  const lines = ticks(0, most, 2).map((at) => draw("g", {}, draw("line", { class: "grid", x1: left, x2: left + wide, y1: y(at), y2: y(at) }),
    label(left - 6, y(at) + 4, bytes(at), { "text-anchor": "end" })));
  const lists = program.lists.map(([name, first, last], index) => {
    const from = x(first), to = x(last + 1), letters = Math.floor((to - from) / 6.2);
    return draw("g", {}, draw("rect", { x: from, y: top + high + 4, width: to - from, height: 16, fill: index % 2 ? "#e6ebf2" : "#d5dde8" }, tip(name)),
      label(from + 3, top + high + 16, fitting(name, letters)));
  });
  const says = label(left, top + high + 38, " ", { class: "soft" });
  const cursor = draw("line", { y1: top, y2: top + high, stroke: "#1c2430", "stroke-dasharray": "3 3", visibility: "hidden" });
  const cover = draw("rect", { x: left, y: top, width: wide, height: high, fill: "transparent", onmousemove: (event) => {
    const area = cover.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - area.left) / area.width * columns)));
    cursor.setAttribute("x1", x(column + 0.5));
    cursor.setAttribute("x2", x(column + 0.5));
    cursor.setAttribute("visibility", "visible");
    const parts = kinds.filter((kind) => program.bytes[kind][column]).map((kind) => `${kind} ${bytes(program.bytes[kind][column])}`);
    const list = program.lists.find(([, first, last]) => first <= column && column <= last);
    says.textContent = cut(`${list ? list[0] : ""}, ${program.instructions[column]}: ${bytes(sums[column])} = ${parts.join(" + ")}`, 190);
  } });
  return picture(left + wide + 10, top + high + 46, ...lines, ...areas, ...lists, cursor, cover, says);
}

function memoryOf(program) {
  const rows = Object.entries(program.most_bytes).map(([kind, most]) => [kind, bytes(most), String(most), percent(most / (program.peak_bytes || 1)), meanings[kind] || ""]);
  const live = program.live_at_fullest.map((one) => [make("span", { class: "name" }, one.name || "–"), one.kind, String(one.copies), bytes(one.bytes)]);
  return make("div", {},
    note(`${program.ranks}: ${bytes(program.peak_bytes)} in all, ${bytes(program.persistent_bytes)} of it always${program.library_bytes ? `, ${bytes(program.library_bytes)} for scratch of libraries, which is not drawn` : ""}. Most is live at `,
      make("span", { class: "name" }, program.fullest_at || "the start"), `: ${bytes(program.fullest_bytes)}.`),
    memoryPicture(program), legend(Object.keys(program.bytes).map((kind) => [kind, kind])),
    make("details", {}, make("summary", {}, "The most of each kind, and what is live at the fullest moment"),
      table(["kind", ">most at once", ">bytes", ">of the peak", "what"], rows),
      make("h3", {}, "Live at the fullest moment, beside what always is"),
      live.length ? table(["buffer", "kind", ">copies", ">bytes"], live) : note("Nothing."),
      program.live_count > live.length ? note(`and ${program.live_count - live.length} smaller ones`) : ""));
}

function showMemory() {
  const all = data.memory, most = Math.max(...all.map((one) => one.peak_bytes));
  section("memory", "Memory over the step",
    note("Instructions go from left to right. Actions in which the same buffers live on, such as the microbatches in the middle of a step, are drawn once. Point at a column for its parts."),
    choice(all.map((one, index) => `program ${index}, ${one.ranks}: ${bytes(one.peak_bytes)}`), (index) => memoryOf(all[index]),
      all.findIndex((one) => one.peak_bytes === most)),
    data.explain.programs > all.length ? note(`Of ${data.explain.programs} programs these are the first.`) : "");
}
