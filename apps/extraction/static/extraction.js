// A field shows where it stands in the text, and a place in the text its field.

function show(number) {
  for (const one of document.querySelectorAll(".found")) one.classList.remove("found");
  if (number === undefined) return;
  for (const one of document.querySelectorAll(`[data-field="${number}"], [data-place="${number}"]`)) one.classList.add("found");
}

function numberAt(target) {
  const one = target instanceof Element ? target.closest("[data-place], mark[data-field]") : null;
  return one?.dataset.place ?? one?.dataset.field;
}

document.addEventListener("mouseover", (event) => show(numberAt(event.target)));
document.addEventListener("focusin", (event) => show(numberAt(event.target)));
