// Tables that show their first rows, and the others when asked.
const firstRows = 40;

/// `columns`: titles, with ">" in front of those of numbers, "=" of what is not
/// to be cut into lines. A cell is a text or a node.
function table(columns, rows) {
  const classes = { ">": "number", "=": "fixed" };
  const cell = (tag, content, index) =>
    make(tag, { class: classes[columns[index][0]] }, content === null || content === undefined ? "–" : content);
  const body = make("tbody");
  const add = (from, to) =>
    body.append(...rows.slice(from, to).map((row) => make("tr", {}, ...row.map((one, index) => cell("td", one, index)))));
  add(0, firstRows);
  const made = make("div", { class: "scroll tall" }, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map((title, index) => cell("th", title.replace(/^[>=]/, ""), index)))), body));
  if (rows.length <= firstRows) return made;
  const more = make("button", { class: "name", onclick: () => { add(firstRows); more.remove(); } },
    `show ${rows.length - firstRows} more`);
  return make("div", {}, made, more);
}
