// Tables: a click on a heading sorts (ascending, descending, original order). A field filters rows.
"use strict";
(() => {
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });

  // Return a cell's value: a number before rounding, text, or null if the cell is blank.
  const value = (cell) => {
    if ("blank" in cell.dataset) return null;
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];
    const titles = table.caption.textContent;

    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const turns = { ascending: "descending", descending: null };
        const now = head.getAttribute("aria-sort");
        const next = now in turns ? turns[now] : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        const rows = [...original];
        if (next) {
          head.setAttribute("aria-sort", next);
          const sign = next === "ascending" ? 1 : -1;
          rows.sort((a, b) => {
            const [x, y] = [value(a.cells[column]), value(b.cells[column])];
            if (x === null || y === null) return (x === null) - (y === null); // blanks last
            return sign * compare(x, y);
          });
        }
        body.append(...rows);
      });
    });

    if (original.length < 4) continue; // nothing to search in
    const bar = document.createElement("p");
    bar.className = "filter";
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.type = "search";
    field.setAttribute("aria-label", `Filter rows of: ${titles}`);
    const count = document.createElement("output");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of original) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      const found = shown ? `${shown} of ${original.length} rows` : `no row has “${field.value.trim()}”`;
      count.textContent = words.length ? found : "";
    };
    field.addEventListener("input", show);
    label.append("Filter rows ", field);
    bar.append(label, " ", count);
    table.parentElement.before(bar);
  }

  // The contents start folded on a narrow screen, since they would fill it.
  if (window.matchMedia("(max-width: 72rem)").matches) {
    document.getElementById("contents").open = false;
  }
})();
