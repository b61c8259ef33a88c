// Puts the page together.
function showCards() {
  const { facts, explain } = data, { estimate, measured } = explain;
  const cards = [[count(explain.parameters), "parameters"], [count(explain.ranks), counted(explain.ranks, "rank").replace(/^\d+ /, "")],
    [bytes(explain.memory_per_rank_bytes.peak), "memory of a rank"], [count(explain.flops_per_step), "flops of the model a step"]];
  const host = explain.host_memory_per_rank.bytes;
  if (host) cards.push([bytes(host), "of the host's memory for a rank"]);
  if (estimate.step_ms !== undefined) {
    cards.push([time(1e3 * estimate.step_ms), `a step, planned on ${estimate.machine}`], [count(estimate.tokens_per_second), "tokens a second, planned"]);
    if (estimate.mfu !== null) cards.push([percent(estimate.mfu), "MFU, planned"]);
    if (estimate.bubble_fraction) cards.push([percent(estimate.bubble_fraction), "bubble, planned"]);
  }
  if (measured) cards.push([time(1e3 * measured.step.median_ms), "a step, measured"]);
  const loss = data.metrics && data.metrics.series.loss;
  if (loss && loss.count) cards.push([String(Number(loss.last.toPrecision(5))), "loss at the end"]);
  document.getElementById("cards").append(...cards.map(([value, text]) => make("div", { class: "card" }, make("b", {}, value), make("span", {}, text))));
  document.title = shown(data.name) + " - Meshwork report";
  document.getElementById("title").textContent = shown(data.name);
  document.getElementById("lead").textContent = shown(`${facts.model || "a model"} on ${facts.device}, ${facts.compute}; a step is ${counted(facts.global_batch, "sequence")} of ${counted(facts.sequence, "token")}, `
    + `on each rank ${counted(facts.microbatches, "microbatch").replace(/hs$/, "hes")} of ${facts.micro_batch}. Made by ${facts.producer}.`);
}

function showRest() {
  if (data.explain.choices.length)
    section("choices", "Choices", table(["key", "value", "why"], data.explain.choices.map((one) => [one.key, one.value, one.why])));
  section("text", "All that explain tells", make("details", {}, make("summary", {}, "meshwork explain"), make("pre", {}, ...lines(data.text))),
    make("details", {}, make("summary", {}, "The effective spec"), make("pre", {}, ...lines(data.explain.spec))));
}
/// Line ends stay; all else that hides is shown.
const lines = (text) => text.split("\n").flatMap((line) => [line.replaceAll("\t", "  "), document.createTextNode("\n")]);

showCards();
if (data.explain.estimate.error)
  document.querySelector("main").append(make("p", { class: "wrong" }, "The plan's machine is broken, so nothing is estimated: " + data.explain.estimate.error));
for (const show of [showMesh, showParameters, showWhy, showMemory, showCommunication, showSchedule, showMetrics, showRest]) show();
