// Tables that show their first rows, and the others when asked.
const firstRows = 40;

/// `columns`: titles, those of numbers with ">" in front. A cell is a text, a
/// node, or a number's text.
function table(columns, rows) {
  const right = columns.map((title) => title.startsWith(">"));
  const cell = (tag, content, index) =>
    make(tag, right[index] ? { class: "number" } : {}, content === null || content === undefined ? "–" : content);
  const body = make("tbody");
  const add = (from, to) =>
    body.append(...rows.slice(from, to).map((row) => make("tr", {}, ...row.map((one, index) => cell("td", one, index)))));
  add(0, firstRows);
  const made = make("div", { class: "scroll tall" }, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map((title, index) => cell("th", title.replace(/^>/, ""), index)))), body));
  if (rows.length <= firstRows) return made;
  const more = make("button", { class: "name", onclick: () => { add(firstRows); more.remove(); } },
    `show ${rows.length - firstRows} more`);
  return make("div", {}, made, more);
}
