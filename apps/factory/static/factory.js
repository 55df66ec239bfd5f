// Leases run out while one looks: the time that is left ticks down. They are renewed by their owners; the page asks anew.

function tick() {
  for (const told of document.querySelectorAll("[data-until]")) {
    const left = (Date.parse(told.dataset.until) - Date.now()) / 1000;
    const text = left > 0 ? `${left.toFixed(0)} s` : "it has run out";
    if (told.textContent !== text) told.textContent = text;
  }
}

tick();
setInterval(tick, 250);
document.addEventListener("htmx:afterSwap", tick);
