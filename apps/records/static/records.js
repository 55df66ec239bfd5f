// Highlights a field in the text when the pointer is on its row, and the row when the pointer is on the field.

const marksOf = (number) => document.querySelectorAll(`.field[data-field~="${CSS.escape(number)}"]`);

function select(number) {
  for (const element of document.querySelectorAll(".selected")) element.classList.remove("selected");
  if (number === null) return;
  for (const mark of marksOf(number)) mark.classList.add("selected");
  document.querySelector(`[data-row="${CSS.escape(number)}"]`)?.classList.add("selected");
}

function numberAt(target) {
  if (!(target instanceof Element)) return null;
  const row = target.closest("[data-row]");
  if (row?.classList.contains("field-row")) return row.dataset.row;
  const mark = target.closest(".field[data-field]");
  return mark ? mark.dataset.field.trim().split(" ").pop() : null;
}

function goTo(row) {
  const [mark] = marksOf(row.dataset.row);
  if (mark) mark.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  else {
    // The field is on a page that is not shown: load that page, and keep the selected run.
    const query = new URLSearchParams(location.search);
    query.set("first", row.dataset.page);
    location.assign(`?${query}#page-${row.dataset.page}`);
  }
}

document.addEventListener("mouseover", (event) => select(numberAt(event.target)));
document.addEventListener("focusin", (event) => {
  const number = numberAt(event.target);
  if (number !== null) select(number);
});
document.addEventListener("click", (event) => {
  const row = event.target instanceof Element ? event.target.closest(".field-row") : null;
  if (row) goTo(row);
});
