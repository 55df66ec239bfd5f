// Dialogs that ask before something is done, copy buttons, and menus that close.
//
//   <button data-dialog="id">    opens <dialog id="id">; <button data-close> inside it closes. Without this file they ask
//                                for a page on which it is open, or closed: see `opens` in parts.html
//   <button data-copy="text">    copies the text; <button data-copy-of="id"> what stands in that element

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
  dialog?.close(); // one that came open with the page is not modal
  dialog?.showModal();
}

function close(event, dialog) {
  if (!dialog) return;
  event.preventDefault();
  dialog.close();
}

async function copy(button, text) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = copyByHand(text) ? "Copied" : "Select and copy by hand";
  }
  setTimeout(() => (button.textContent = said), 1600);
}

// The clipboard is closed to pages that came without TLS from another machine.
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
