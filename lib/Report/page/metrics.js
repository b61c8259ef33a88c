// Curves of a run.
const metricUnits = { tokens_per_s: "tokens a second", step_ms: "ms a step", lr: "learning rate", grad_norm: "norm of the gradient", loss: "loss" };

function curve(points, x, y) {
  let path = "", run = null;
  for (const [step, value, number] of points) {
    path += `${number === run ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    run = number;
  }
  return path;
}

function curves(names) {
  const series = names.map((name) => data.metrics.series[name]), points = series.flatMap((one) => one.points);
  if (!points.length) return note("It has no finite number.");
  const left = 76, top = 8, wide = 1100, high = 260;
  const least = (place) => points.reduce((all, one) => Math.min(all, one[place]), Infinity), most = (place) => points.reduce((all, one) => Math.max(all, one[place]), -Infinity);
  const steps = [least(0), Math.max(most(0), least(0) + 1)], pad = (most(1) - least(1)) * 0.04 || Math.abs(most(1)) * 0.05 || 1, values = [least(1) - pad, most(1) + pad];
  if (!Number.isFinite(values[1] - values[0])) return note("Its numbers are too large to draw.");
  const x = (step) => left + wide * (step - steps[0]) / (steps[1] - steps[0]), y = (value) => top + high * (1 - (value - values[0]) / (values[1] - values[0]));
  const digits = (value) => String(Number(value.toPrecision(4)));
  const lines = ticks(...values).map((at) => draw("g", {}, draw("line", { class: "grid", x1: left, x2: left + wide, y1: y(at), y2: y(at) }), label(left - 6, y(at) + 4, digits(at), { "text-anchor": "end" })));
  const marks = ticks(...steps).filter(Number.isInteger).map((at) => label(x(at), top + high + 16, at === steps[0] ? `step ${at}` : String(at), { "text-anchor": "middle", class: "soft" }));
  const drawn = series.flatMap((one, index) => {
    const paint = spare[index % spare.length];
    const dots = one.points.length <= 60 ? one.points.map(([step, value]) => draw("circle", { cx: x(step).toFixed(1), cy: y(value).toFixed(1), r: 2.5, fill: paint }, tip(`${names[index]} at step ${step}: ${value}`))) : [];
    return [draw("path", { d: curve(one.points, x, y), fill: "none", stroke: paint, "stroke-width": 1.6 }), ...dots];
  });
  const keys = make("div", { class: "legend" }, ...names.map((name, index) => make("span", {}, make("i", { style: `background:${spare[index % spare.length]}` }),
    `${known(metricUnits, name) || name}: ${series[index].count ? `${series[index].first} to ${series[index].last}` : "none"}` + (series[index].not_finite ? `, ${counted(series[index].not_finite, "line")} without a finite number` : ""))));
  return make("div", {}, picture(left + wide + 20, top + high + 22, ...lines, ...marks, ...drawn), keys);
}

function showMetrics() {
  if (!data.metrics) {
    section("loss", "Loss", note("With --metrics the page has the curves of a run."));
    return;
  }
  const all = Object.keys(data.metrics.series), groups = [];
  const losses = ["loss", "eval_loss"].filter((name) => all.includes(name));
  if (losses.length) groups.push(losses);
  const rank = (name) => { const at = ["grad_norm", "lr", "tokens_per_s", "step_ms", "mfu"].indexOf(name); return at < 0 ? 99 : at; };
  for (const name of all.filter((one) => !losses.includes(one)).sort((a, b) => rank(a) - rank(b))) groups.push([name]);
  section("loss", "Loss and other metrics", note(`${counted(data.metrics.lines, "line")} of metrics.`, data.metrics.series_left_out ? ` ${data.metrics.series_left_out} further numbers of each line are left out.` : ""),
    groups.length ? choice(groups.map((names) => names.join(" and ")), (index) => curves(groups[index])) : note("They hold no number."));
}
