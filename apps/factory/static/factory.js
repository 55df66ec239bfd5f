// Counts down the time until each lease expires. Workers renew their leases; the page polls for the new times.

function tick() {
  for (const element of document.querySelectorAll("[data-until]")) {
    const left = (Date.parse(element.dataset.until) - Date.now()) / 1000;
    const text = left > 0 ? `${left.toFixed(0)} s` : "expired";
    if (element.textContent !== text) element.textContent = text;
  }
}

tick();
setInterval(tick, 250);
document.addEventListener("htmx:afterSwap", tick);
