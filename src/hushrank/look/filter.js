// Gives every table marked data-filterable a box above it that hides the rows without all the words typed.
for (const table of document.querySelectorAll("table[data-filterable]")) {
  const box = table.closest(".scroll");
  const headings = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.classList.contains("group"));
  const plain = (text) => text.toLowerCase().replaceAll("\u2212", "-").replace(/\s+/g, " ");
  const words = (cell) => `${cell.textContent} ${cell.dataset.copy ?? ""}`;
  const texts = new Map(rows.map((row) => [row, plain([...row.cells].map(words).join(" "))]));

  const input = document.createElement("input");
  input.type = "search";
  input.autocomplete = "off";
  input.spellcheck = false;
  input.setAttribute("aria-label", `Filter rows of ${box.getAttribute("aria-label")}`);
  const label = document.createElement("label");
  label.append("Filter rows ", input);
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  const line = document.createElement("div");
  line.className = "filter";
  line.append(label, count);
  box.before(line);

  // Columns keep their widths while rows come and go, and follow their content again when the box is empty.
  const hold = (isHeld) => {
    if (isHeld === (table.style.tableLayout === "fixed")) return;
    const widths = headings.map((heading) => heading.getBoundingClientRect().width);
    table.style.width = isHeld ? `${table.getBoundingClientRect().width}px` : "";
    headings.forEach((heading, i) => { heading.style.width = isHeld ? `${widths[i]}px` : ""; });
    table.style.tableLayout = isHeld ? "fixed" : "";
  };
  const show = () => {
    const wanted = plain(input.value).split(" ").filter(Boolean);
    hold(wanted.length > 0);
    for (const row of rows) row.hidden = !wanted.every((word) => texts.get(row).includes(word));
    for (const body of table.tBodies) body.hidden = rows.every((row) => row.parentNode !== body || row.hidden);
    const n = rows.filter((row) => !row.hidden).length;
    const none = n ? "" : ": none has all these words";
    count.textContent = wanted.length ? `${n} of ${rows.length} rows${none}` : `${rows.length} rows`;
  };
  input.addEventListener("input", show);
  show();
}
