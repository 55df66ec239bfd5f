// A field shows its place in the text, and a place its field.

const marksOf = (number) => document.querySelectorAll(`.field[data-field~="${CSS.escape(number)}"]`);

function show(number) {
  for (const one of document.querySelectorAll(".found")) one.classList.remove("found");
  if (number === null) return;
  for (const mark of marksOf(number)) mark.classList.add("found");
  document.querySelector(`[data-place="${CSS.escape(number)}"]`)?.classList.add("found");
}

function numberAt(target) {
  if (!(target instanceof Element)) return null;
  const row = target.closest("[data-place]");
  if (row?.classList.contains("field-row")) return row.dataset.place;
  const mark = target.closest(".field[data-field]");
  return mark ? mark.dataset.field.trim().split(" ").pop() : null;
}

function goTo(row) {
  const [mark] = marksOf(row.dataset.place);
  if (mark) mark.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  else {
    // It is on a page that is not shown: go there, and stay with the run that is.
    const asked = new URLSearchParams(location.search);
    asked.set("first", row.dataset.page);
    location.assign(`?${asked}#page-${row.dataset.page}`);
  }
}

document.addEventListener("mouseover", (event) => show(numberAt(event.target)));
document.addEventListener("focusin", (event) => {
  const number = numberAt(event.target);
  if (number !== null) show(number);
});
document.addEventListener("click", (event) => {
  const row = event.target instanceof Element ? event.target.closest(".field-row") : null;
  if (row) goTo(row);
});
