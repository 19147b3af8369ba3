// Gives every table marked data-copyable two buttons below it: its rows, as filtered and sorted, as LaTeX and as CSV.
// A cell may carry data-copy (what to copy instead of what is shown), data-value (its exact number, for CSV) and
// data-std (the spread of that number, a column of its own in CSV); a heading may carry data-unit, that of the numbers.
{
  const signs = {
    "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "#": "\\#", "%": "\\%", "_": "\\_",
    "^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "\u00b1": "$\\pm$", "\u2212": "$-$", "\u00d7": "$\\times$", "\u2260": "$\\neq$", "\u2264": "$\\leq$",
    "\u2265": "$\\geq$", "\u2013": "--", "\u2014": "---", "\u00b7": "$\\cdot$", "\u2019": "'", "\u2026": "\\ldots{}",
    "\u2713": "", "\u2717": "",
  };
  const number = /^[+\u2212-]?[\d.,]+( \u00b1 [\d.,]+)?$/;
  const words = (cell) => (cell.dataset.copy ?? cell.textContent).replace(/\s+/g, " ").trim();

  const latexText = (text) => {
    if (number.test(text) && /[+\u2212\u00b1-]/.test(text)) {
      return `$${text.replace("\u2212", "-").replace("\u00b1", "\\pm").replaceAll(",", "{,}")}$`;
    }
    return [...text].map((sign) => signs[sign] ?? sign).join("").trim();
  };
  const latex = ({ headings, groups }) => {
    const line = (cells) => `${cells.map((cell) => latexText(words(cell))).join(" & ")} \\\\`;
    const align = headings.map((heading) => (heading.classList.contains("number") ? "r" : "l")).join("");
    const lines = groups.flatMap(({ title, rows }) => [
      ...(title ? [`\\multicolumn{${headings.length}}{l}{\\emph{${latexText(title)}}} \\\\`] : []),
      ...rows.map(line),
    ]);
    const head = ["% \\usepackage{booktabs}", `\\begin{tabular}{${align}}`, "\\toprule", line(headings), "\\midrule"];
    return [...head, ...lines, "\\bottomrule", "\\end{tabular}", ""].join("\n");
  };

  const csvField = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = ({ headings, groups, spreads }) => {
    const unit = (heading) => (heading.dataset.unit ? ` (${heading.dataset.unit})` : "");
    const isGrouped = groups.some(({ title }) => title);
    const wide = (cells, text, spread) => cells.flatMap((c, i) => (spreads[i] ? [text(c), spread(c)] : [text(c)]));
    const name = (heading) => words(heading) + unit(heading);
    const head = wide(headings, name, (heading) => `${name(heading)} std`);
    const text = (cell) => words(cell).replace("\u2212", "-").replace(/^\u2013$/, ""); // what is not known is left out
    const value = (cell) => cell.dataset.copy ?? cell.dataset.value ?? text(cell);
    const lines = groups.flatMap(({ title, rows }) =>
      rows.map((row) => [...(isGrouped ? [title] : []), ...wide(row, value, (cell) => cell.dataset.std ?? "")]));
    return [[...(isGrouped ? ["group"] : []), ...head], ...lines].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
  };

  const read = (table) => {
    const bodies = [...table.tBodies].map((body) => ({
      title: body.querySelector("tr.group")?.textContent.trim() ?? "",
      rows: [...body.rows].filter((row) => !row.classList.contains("group") && !row.hidden).map((row) => [...row.cells]),
    }));
    const headings = [...table.tHead.rows[0].cells];
    const all = [...table.querySelectorAll("tbody tr:not(.group)")];
    const spreads = headings.map((_, i) => all.some((row) => row.cells[i].dataset.std !== undefined));
    return { headings, spreads, groups: bodies.filter(({ rows }) => rows.length) };
  };

  for (const table of document.querySelectorAll("table[data-copyable]")) {
    const line = document.createElement("div");
    line.className = "tools";
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    const text = document.createElement("textarea");
    text.readOnly = true;
    text.hidden = true;
    text.rows = 8;
    text.setAttribute("aria-label", "Text to copy");
    let timer;
    const say = (message, seconds) => {
      clearTimeout(timer);
      status.textContent = message;
      if (seconds) timer = setTimeout(() => { status.textContent = ""; }, 1000 * seconds);
    };
    const copy = async (made) => {
      text.hidden = true;
      try {
        await navigator.clipboard.writeText(made);
        say("Copied", 4);
      } catch { // no clipboard here, or the reader said no
        text.value = made;
        text.hidden = false;
        text.focus();
        text.select();
        text.scrollTop = 0;
        say("The browser did not let the page copy. The text is selected below: copy it with Ctrl+C.");
      }
    };
    for (const [name, make] of [["LaTeX", latex], ["CSV", csv]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `Copy as ${name}`;
      button.addEventListener("click", () => copy(make(read(table))));
      line.append(button);
    }
    line.append(status, text);
    table.closest(".scroll").after(line);
  }
}
