// What moves between ranks, by axis.
function trafficBars(rows) {
  const axes = [...new Set(rows.map((row) => row.axis))], kinds = [...new Set(rows.map((row) => row.kind))];
  const sum = (list, key) => list.reduce((all, row) => all + row[key], 0);
  const most = Math.max(...axes.map((axis) => sum(rows.filter((row) => row.axis === axis), "bytes_sent_per_rank")), 1);
  const left = 110, wide = 640, high = 30;
  const exposed = data.explain.estimate.exposed_ms || {};
  const bars = axes.map((axis, index) => {
    const own = rows.filter((row) => row.axis === axis), total = sum(own, "bytes_sent_per_rank");
    let from = left;
    const parts = kinds.map((kind, place) => {
      const some = own.filter((row) => row.kind === kind), size = sum(some, "bytes_sent_per_rank");
      const made = draw("rect", { x: from, y: index * high + 4, width: wide * size / most, height: high - 8, fill: colour(kind, place) },
        tip(`${kind} over ${axis}: ${bytes(size)} in ${counted(sum(some, "count"), "call")}`));
      from += wide * size / most;
      return made;
    });
    const waits = exposed[axis] > 0 ? `, ${time(1e3 * exposed[axis])} not hidden` : "";
    return draw("g", {}, label(left - 8, index * high + 19, cut(axis, 16), { "text-anchor": "end" }), ...parts,
      label(from + 8, index * high + 19, `${bytes(total)}, ${counted(sum(own, "count"), "call")}${waits}`));
  });
  return make("div", {}, picture(left + wide + 330, axes.length * high + 4, ...bars), legend(kinds.map((kind) => [kind, kind])));
}

function trafficOf(rows) {
  if (!rows.length) return note("Nothing moves between these ranks.");
  const sorted = [...rows].sort((a, b) => b.bytes_sent_per_rank - a.bytes_sent_per_rank);
  return make("div", {}, trafficBars(rows), make("details", {}, make("summary", {}, "Each cause"),
    table(["collective", "axis", "phase", ">count", ">sent by a rank", "cause", "keys of the spec"],
      sorted.map((row) => [row.kind, row.axis, row.phase, String(row.count), bytes(row.bytes_sent_per_rank), row.cause, row.annotations.join(", ")]))));
}

function measuredMoves() {
  const measured = data.explain.measured;
  if (!measured || !measured.moves.length) return "";
  const ms = (value) => time(1e3 * value);
  return make("div", {}, make("h3", {}, "Measured, of a step"),
    table(["what moves", "axis", "phase", ">program", ">count", ">planned", ">median", ">waiting for peers", ">hidden"],
      measured.moves.map((one) => [one.kind, one.axis, one.phase, String(one.program), String(one.count), ms(one.planned_ms), ms(one.median_ms), ms(one.wait_ms), percent(one.hidden_fraction)])));
}

function showCommunication() {
  const all = data.explain.collectives, programs = data.explain.programs;
  const of = (index) => all.filter((row) => programs === 1 || row.program === index);
  const sent = (index) => of(index).reduce((sum, row) => sum + row.bytes_sent_per_rank, 0);
  const numbers = data.memory.map((_, index) => index);
  const first = numbers.reduce((best, index) => (sent(index) > sent(best) ? index : best), 0);
  section("communication", "Communication by axis",
    note("Bytes that a rank sends in a step. “Not hidden” is the time, by estimate, in which the rank with most to do waits for it."),
    choice(numbers.map((index) => `program ${index}, ${data.memory[index].ranks}: ${bytes(sent(index))}`), (index) => trafficOf(of(index)), first),
    measuredMoves());
}
