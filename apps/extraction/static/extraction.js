// Highlights a field in the text when the pointer is on its row, and the row when the pointer is on the field.

function select(number) {
  for (const element of document.querySelectorAll(".selected")) element.classList.remove("selected");
  if (number === undefined) return;
  for (const element of document.querySelectorAll(`[data-field="${number}"], [data-row="${number}"]`)) element.classList.add("selected");
}

function numberAt(target) {
  const element = target instanceof Element ? target.closest("[data-row], mark[data-field]") : null;
  return element?.dataset.row ?? element?.dataset.field;
}

document.addEventListener("mouseover", (event) => select(numberAt(event.target)));
document.addEventListener("focusin", (event) => select(numberAt(event.target)));
