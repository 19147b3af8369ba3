// Gives every table marked data-sortable a button in each heading. Cells may carry data-value, a number to sort by.
// Groups of rows (several tbody) stay together, each below its heading; cells without a number always come last.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const compare = (a, b, sign) => {
    if (typeof a === "number" && typeof b === "number") return (a - b) * sign;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true }) * sign;
  };
  const sort = (column, sign) => {
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      body.append(...rows.sort((a, b) => compare(key(a, column), key(b, column), sign)));
    }
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort"); // numbers start with the highest, words with a
      const descends = before ? before === "ascending" : heading.classList.contains("number");
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descends ? "descending" : "ascending");
      sort(column, descends ? -1 : 1);
    });
  });
}
