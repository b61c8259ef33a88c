// When the actions of a step run: planned, and beside it measured.
const spanWords = { F: "forward", B: "backward", I: "backward, for the input", W: "backward, for the weights", step: "start of the step", update: "optimizer" };

function scheduleRows(side, scale, kinds) {
  const left = 76, high = 24;
  return side.rows.map((row, index) => {
    const y = index * high;
    const spans = row.spans.map(([word, stage, microbatch, begin, end, wait]) => {
      kinds.add(word);
      const name = word.length > 1 ? word : `${stage}${word}${microbatch}`, x = left + begin * scale, wide = (end - begin) * scale;
      const rect = draw("rect", { x: x.toFixed(2), y: y + 2, width: Math.max(wide, 0.3).toFixed(2), height: high - 4, fill: colour(word), stroke: wide > 3 ? "#fff" : undefined, "stroke-width": 0.5 },
        tip(`${name}, rank ${row.rank}: ${time(begin)} to ${time(end)}, ${time(end - begin)}${wait ? `, of it ${time(wait)} waiting for peers` : ""}`));
      return wide > 6.6 * name.length + 2 ? draw("g", {}, rect, label((x + wide / 2).toFixed(1), y + 16, name, { "text-anchor": "middle" })) : rect;
    });
    return draw("g", {}, label(left - 8, y + 16, `rank ${row.rank}`, { "text-anchor": "end" }), ...spans);
  });
}

function scheduleSide(title, side, end, kinds) {
  const left = 76, wide = 1140, scale = wide / (end || 1), high = side.rows.length * 24;
  const marks = ticks(0, end).map((at) => draw("g", {}, draw("line", { class: "grid", x1: left + at * scale, x2: left + at * scale, y1: 0, y2: high }),
    label(left + at * scale, high + 14, time(at), { "text-anchor": at === 0 ? "start" : "middle", class: "soft" })));
  const missing = side.rows.reduce((sum, row) => sum + row.left_out, 0);
  return make("div", {}, make("h3", {}, title), picture(left + wide + 30, high + 20, ...marks, ...scheduleRows(side, scale, kinds)),
    missing ? note(`${missing} later actions are left out.`) : "", side.rows_left_out ? note(`${counted(side.rows_left_out, "row")} of further ranks are left out.`) : "");
}

function bubbleText() {
  const { estimate, measured } = data.explain;
  const says = [];
  if (estimate.step_ms !== undefined) says.push(`Planned: ${time(1e3 * estimate.step_ms)} a step on ${estimate.machine}`
    + (estimate.bubble_fraction ? `, of the pipeline ${percent(estimate.bubble_fraction)} is bubble` : "") + ".");
  if (measured) says.push(`Measured: ${time(1e3 * measured.step.median_ms)}, the median of ${counted(measured.steps, "step")}`
    + (measured.pipeline ? `, with ${percent(measured.pipeline.bubble_fraction.measured)} bubble` : "") + ".");
  return says.join(" ");
}

function measuredLists() {
  const measured = data.explain.measured;
  if (!measured) return "";
  const ms = (value) => time(1e3 * value);
  return make("details", {}, make("summary", {}, "Times of each list of instructions"),
    table(["list", ">program", ">runs a step", ">planned", ">best", ">median", ">median / planned", ">waiting for peers"],
      measured.lists.map((one) => [one.list, String(one.program), String(one.runs), ms(one.planned_ms), ms(one.best_ms), ms(one.median_ms), one.ratio === null ? null : one.ratio.toFixed(2), ms(one.wait_ms)])));
}

function showSchedule() {
  const { planned, measured } = data.schedule, kinds = new Set(), sides = [];
  if (planned.error) sides.push(make("p", { class: "wrong" }, "Nothing is planned to the moment: " + planned.error));
  // One scale for both where both can be read on it; else each has its own.
  const ends = [planned.end_us || 0, measured ? measured.end_us : 0], far = Math.max(...ends);
  const isShared = measured && planned.end_us && Math.min(...ends) > far / 3;
  if (!planned.error) sides.push(scheduleSide("Planned", planned, isShared ? far : planned.end_us, kinds));
  if (measured) sides.push(scheduleSide(`Measured: step ${measured.step}, which took about the median`, measured, isShared ? far : measured.end_us, kinds));
  if (measured && !isShared && !planned.error) sides.push(note("The two have scales of their own: one takes more than three times as long as the other."));
  section("schedule", "Schedule",
    note(bubbleText(), data.explain.programs > 1 ? " One row for each coordinate along the pipeline's axis: its first rank." : " All ranks run the same actions; the row is the first rank's.",
      measured ? " A measured row begins at the rank's own first instruction; waiting for peers is within its actions." : " With --trace the page also has the times of a run."),
    ...sides, legend([...kinds].map((kind) => [kind, `${kind.length > 1 ? "" : kind + ": "}${spanWords[kind] || kind}`])), measuredLists());
}
