// The mesh: its axes, what each splits, and which ranks run which program.
const mostCells = 24;

/// The first and the last coordinates of an axis.
function coordinates(size) {
  if (size <= mostCells) return [...Array(size).keys()];
  return [...Array(mostCells - 2).keys(), null, size - 1];
}

function strip(axis, stride) {
  const cells = coordinates(axis.size), wide = 30, high = 24;
  const parts = cells.map((at, index) => draw("g", {},
    draw("rect", { x: index * wide + 1, y: 1, width: wide - 2, height: high - 2, rx: 3, fill: at === null ? "none" : "#dbe7f7" },
      tip(at === null ? "and so on" : `${axis.axis}=${at}: ${stride === 1 ? "neighbours are ranks side by side" : `neighbours are ${stride} ranks apart`}`)),
    label(index * wide + wide / 2, 16, at === null ? "…" : String(at), { "text-anchor": "middle" })));
  return picture(cells.length * wide, high, ...parts);
}

/// The keys of the spec that name the axis, each once.
function splitBy(axis) {
  const found = new Map();
  for (const one of data.why ? data.why.annotations : [])
    if (one.value.includes(`"${axis}"`)) found.set(one.annotation, one.place);
  if (data.facts.program_axes.includes(axis)) found.set("stages of the pipeline", "one program for each");
  return [...found].map(([key, place]) => `${key} (${place})`);
}

function rankGrid() {
  const { mesh, ranks } = data.explain;
  if (!data.facts.program_of_rank) return "";
  // A row of the picture is what the inner axes have, if that is not too long.
  let columns = 1;
  for (const axis of mesh.slice(1).reverse())
    if (columns * axis.size <= 32) columns *= axis.size;
    else break;
  if (columns === 1) columns = Math.min(ranks, 32);
  const size = 34, rows = Math.ceil(ranks / columns);
  const cells = [...Array(ranks).keys()].map((rank) => {
    const x = (rank % columns) * size, y = Math.floor(rank / columns) * 26;
    let rest = rank;
    const place = [...mesh].reverse().map((axis) => {
      const text = `${axis.axis}=${rest % axis.size}`;
      rest = Math.floor(rest / axis.size);
      return text;
    }).reverse().join(", ");
    const program = data.facts.program_of_rank[rank];
    return draw("g", {},
      draw("rect", { x: x + 1, y: y + 1, width: size - 2, height: 24, rx: 3, fill: spare[program % spare.length], "fill-opacity": 0.35 },
        tip(`rank ${rank}: ${place}${data.explain.programs > 1 ? `, program ${program}` : ""}`)),
      label(x + size / 2, y + 17, String(rank), { "text-anchor": "middle" }));
  });
  return make("div", {}, make("h3", {}, "Ranks"),
    note(data.explain.programs > 1 ? "Ranks of one colour run one program. " : "", "Point at a rank for its coordinates."),
    picture(columns * size, rows * 26, ...cells));
}

function showMesh() {
  const { mesh, ranks } = data.explain;
  let stride = ranks;
  const rows = mesh.map((axis) => {
    stride /= axis.size;
    return [axis.axis, String(axis.size), strip(axis, stride), make("div", {}, ...splitBy(axis.axis).map((text) => make("div", {}, text)))];
  });
  section("mesh", "Mesh",
    note(`${counted(ranks, "rank")}: the product of the axes, the outermost first. Ranks are counted along the last axis first.`),
    mesh.length ? table(["axis", ">size", "coordinates", "split by these keys of the spec (and where they stand)"], rows)
      : note("No axes: one rank does everything."),
    rankGrid());
}
