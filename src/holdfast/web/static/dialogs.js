// Confirmation dialogs, copy buttons, and menus that close.
//
//   <button data-dialog="id">    opens <dialog id="id">; <button data-close> inside it closes it. Without JavaScript, the
//                                buttons load the page with the dialog open or closed: see `opens` in parts.html
//   <button data-copy="text">    copies the text; <button data-copy-of="id"> copies the text of that element

export function startDialogs() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.dialog) open(event, document.getElementById(button.dataset.dialog));
    else if (button?.hasAttribute("data-close")) close(event, button.closest("dialog"));
    else if (button?.dataset.copy !== undefined) copy(button, button.dataset.copy);
    else if (button?.dataset.copyOf) copy(button, document.getElementById(button.dataset.copyOf).textContent);
    if (event.target.tagName === "DIALOG") event.target.close(); // the backdrop
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}

function open(event, dialog) {
  event.preventDefault();
  dialog?.close(); // a dialog that was open when the page loaded is not modal
  dialog?.showModal();
}

function close(event, dialog) {
  if (!dialog) return;
  event.preventDefault();
  dialog.close();
}

async function copy(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = copyByHand(text) ? "Copied" : "Select and copy by hand";
  }
  setTimeout(() => (button.textContent = label), 1600);
}

// Browsers block the clipboard API on pages from other machines without TLS.
function copyByHand(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
