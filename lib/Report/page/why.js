// Why a value lies as it does: follows the notes of the plan from the value to
// the spec, as `meshwork explain PLAN VALUE` does.
const why = data.why;
const mostAnswers = 12, mostLinks = 10000;

const valueName = (place) => {
  const [scope, leaf] = why.values[place];
  return (why.scopes[scope] || "") + (why.leaves[leaf] || "");
};
const storyOf = (place) => why.values[place] && why.stories[why.values[place][2]];

/// From a dim and axis of a value to an annotation: what the value follows, op
/// by op. A file may hold a circle.
function chainOf(place, first) {
  const links = [];
  for (let cause = first; cause && links.length < mostLinks;) {
    const [axis, annotation, op, factor, back, dim] = cause;
    const found = annotation === null ? undefined : why.annotations[annotation];
    const link = found ? { ...found } : { op, factor };
    links.push(link);
    if (found || back === 0) break;
    place -= back;
    const next = storyOf(place), from = next && next.dims[dim];
    if (!from) break;
    link.follows = valueName(place);
    link.dim = from.dim;
    cause = from.causes.find((one) => one[0] === axis);
  }
  return links;
}

function linkText(link) {
  if (link.annotation !== undefined) return `${link.annotation} = ${link.value} (${link.place})`;
  if (link.follows === undefined) return `${link.op}, of a value without notes`;
  return `as ${link.dim} of ${link.follows}, through ${link.op}` + (link.factor && link.factor !== link.dim ? ` along ${link.factor}` : "");
}

/// Long chains go through many layers in one way: the ends tell.
function chainList(links) {
  const items = links.map((link) => make("li", {}, linkText(link)));
  if (items.length <= 8) return make("ul", { class: "chain" }, ...items);
  const hidden = items.splice(4, items.length - 7);
  const more = make("li", {}, make("button", { class: "name", onclick: () => more.replaceWith(...hidden) }, `${hidden.length} more ops`));
  items.splice(4, 0, more);
  return make("ul", { class: "chain" }, ...items);
}

function movesOf(story) {
  return story.moves.map((move) => make("div", {}, make("b", {}, move.phase), `: ${move.reason}`, make("br"), make("code", {}, `${move.from} → ${move.to}`),
    make("ul", { class: "chain" }, ...move.steps.map((step) => make("li", {}, `${step.step}: ${bytes(step.bytes_sent_per_rank)} sent by a rank`)))));
}

function answerOf(place) {
  const story = storyOf(place);
  if (!story) return "";
  const isGathered = story.moves.some((move) => move.reason.startsWith("is stored over"));
  const dims = story.dims.map((dim) => make("div", {}, make("b", {}, dim.dim || "(no name)"),
    dim.causes.length ? `: split over ${dim.causes.map((cause) => cause[0]).join(", ")}` : ": not split",
    ...dim.causes.map((cause) => make("div", {}, dim.causes.length > 1 ? `${cause[0]}: ` : "", chainList(chainOf(place, cause))))));
  return make("div", {}, isGathered ? note("As it is computed with, which is not as it is stored.") : "",
    ...dims, story.moves.length ? make("h3", {}, "Moved") : "", ...movesOf(story));
}

/// Values with one answer, as the states of an optimizer are, share it.
function answersOf(places) {
  const answers = new Map();
  for (const place of places) {
    const answer = answerOf(place), key = answer.textContent;
    if (!answers.has(key)) answers.set(key, { answer, names: [] });
    answers.get(key).names.push(valueName(place));
  }
  return [...answers.values()].map(({ answer, names }) => make("div", { class: "answer" },
    ...names.map((name) => make("h3", { class: "name", "data-value": shown(name) }, name)), answer));
}

/// A state's new value lies as the state does; of interest is what moves it.
const isTold = (place) => !valueName(place).includes(" after the update)") || (storyOf(place) || { moves: [] }).moves.length > 0;

/// Whole names with what belongs to them first, then ends of names, then parts;
/// * and ? as in a shell.
function matchesOf(query) {
  const pattern = query.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, ".*").replace(/\?/g, ".");
  const tests = [`^${pattern}$`, `^${pattern} \\([^()]*\\)$`, `[./ ]${pattern}$`, pattern].map((one) => new RegExp(one, "s"));
  const ranked = tests.map(() => []);
  for (let place = 0; place < why.values.length; ++place) {
    const first = tests.findIndex((test) => test.test(valueName(place)));
    if (first >= 0 && isTold(place)) ranked[first].push(place);
  }
  return ranked[0].length ? [...ranked[0], ...ranked[1]] : ranked.flat();
}

function showWhy() {
  if (!why || !why.values.length) {
    section("why", "Why is a tensor split so?", note("The plan has no notes on this."));
    return;
  }
  const place = make("div");
  const answer = (query) => {
    const found = query ? matchesOf(query) : [];
    place.replaceChildren(make("div", { class: "answers" }, ...answersOf(found.slice(0, mostAnswers))), query && !found.length ? note("No value has such a name.") : "",
      found.length > mostAnswers ? note(`and ${found.length - mostAnswers} more that match: a longer name tells fewer`) : "");
  };
  const input = make("input", { type: "search", list: "values", placeholder: "a name, the end of one, or a pattern with * and ?",
    "aria-label": "name of a value", oninput: (event) => answer(event.target.value.trim()) });
  const named = data.parameters.map((one) => one.name).slice(0, 400);
  section("why", "Why is a tensor split so?",
    note("Ask for a parameter, for what an op makes (called after its weight), or for “(gradient)” of either. Each line leads one op further, up to the key of the spec."),
    input, make("datalist", { id: "values" }, ...named.map((name) => make("option", { value: name }))), place);
  const fromAddress = () => {
    const match = /^#why=(.*)$/s.exec(location.hash);
    if (!match) return false;
    try { input.value = decodeURIComponent(match[1]); } catch { return false; }
    answer(input.value);
    return true;
  };
  window.addEventListener("hashchange", fromAddress);
  if (fromAddress()) return;
  // To begin with, a parameter of a layer, split if one is.
  const places = [...why.values.keys()].filter((at) => storyOf(at) && /\.weight$/.test(valueName(at)));
  const rest = places.filter((at) => !named.includes(valueName(at)));
  const isSplit = (at) => storyOf(at).dims.some((dim) => dim.causes.length);
  const first = [rest.find(isSplit), places.find(isSplit), places[0], 0].find((at) => at !== undefined);
  input.value = valueName(first);
  answer(input.value);
}
