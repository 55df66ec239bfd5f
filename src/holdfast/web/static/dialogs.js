// Dialogs that ask before something is done, copy buttons, and menus that close.
//
//   <button data-dialog="id">    opens <dialog id="id">; <button data-close> inside it closes
//   <button data-copy="text">    copies the text; <button data-copy-of="id"> what stands in that element

export function startDialogs() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.dialog) document.getElementById(button.dataset.dialog)?.showModal();
    else if (button?.hasAttribute("data-close")) button.closest("dialog")?.close();
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
