// Sort tables inside of <div class="sortable"> by a click on a column's title; a second click reverses the order.
const number = (cell) => parseFloat(cell.textContent.replace(/[,\s]/g, "").replace("−", "-"));

for (const table of document.querySelectorAll(".sortable table")) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    const button = document.createElement("button");
    button.append(...title.childNodes);
    title.append(button);
    button.addEventListener("click", () => {
      const sign = title.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of titles) other.removeAttribute("aria-sort");
      title.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      const numeric = rows.every((row) => !Number.isNaN(number(row.cells[column])));
      rows.sort((first, second) => {
        const [a, b] = [first.cells[column], second.cells[column]];
        return sign * (numeric ? number(a) - number(b) : a.textContent.localeCompare(b.textContent));
      });
      table.tBodies[0].append(...rows);
    });
  });
}
