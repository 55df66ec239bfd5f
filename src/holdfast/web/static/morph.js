// Updates an element from a new rendering and changes only what is different, so that focus, selection, scroll position,
// open details and typed text stay. Elements with data-keep are not touched.
//
// Rows don't move under the pointer. While the pointer or the focus is in a <tbody data-rows>, rows are updated in place,
// removed rows stay dimmed, and new rows wait behind a button until it is pressed or the pointer leaves.

export function morphSwap(target, fragment) {
  const fresh = fragment.firstElementChild;
  if (!fresh) return [target];
  morph(target, fresh);
  return [target];
}

export function morph(old, fresh) {
  if (old.hasAttribute("data-keep")) return;
  if (old.isEqualNode(fresh)) return;
  if (!old.hasAttribute("data-log")) attributes(old, fresh); // log.js keeps the cursor of the log
  if (old.matches("tbody[data-rows]")) rows(old, fresh);
  else children(old, fresh);
}

function attributes(old, fresh) {
  const open = old.matches("details, dialog"); // the user decides whether these are open
  const asked = old.hasAttribute("hx-trigger");
  for (const { name, value } of [...fresh.attributes]) {
    if (!(open && name === "open") && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(open && name === "open")) old.removeAttribute(name);
  }
  // After a swap, htmx processes only elements that have hx- attributes. Without this call, an element that has lost
  // its hx-trigger would keep polling.
  if (asked && !old.hasAttribute("hx-trigger")) htmx.process(old);
}

function children(old, fresh) {
  const kept = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const named = wanted.id ? kept.get(wanted.id) : undefined;
    if (named && named.tagName === wanted.tagName) {
      if (named === place) place = place.nextSibling;
      else old.insertBefore(named, place);
      morph(named, wanted);
    } else if (place && alike(place, wanted)) {
      const found = place;
      place = place.nextSibling;
      if (found.nodeType === Node.ELEMENT_NODE) morph(found, wanted);
      else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
    } else {
      old.insertBefore(wanted, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && !one.id && !other.id;
}

// Rows ----------------------------------------------------------------------------------------------------------------

const waiting = new WeakMap(); // tbody → the rendering to apply when the pointer has left

function watched(body) {
  return body.matches(":hover") || body.contains(document.activeElement);
}

function rows(body, fresh) {
  if (!watched(body)) {
    waiting.delete(body);
    children(body, fresh);
    announce(body, 0);
    return;
  }
  waiting.set(body, fresh.cloneNode(true));
  const news = new Map([...fresh.children].map((row) => [row.id, row]));
  const known = new Set([...body.children].map((row) => row.id));
  for (const row of [...body.children]) {
    const renewed = news.get(row.id);
    if (renewed) morph(row, renewed);
    else row.classList.add("gone");
  }
  announce(body, [...news.keys()].filter((id) => !known.has(id)).length);
}

function announce(body, count) {
  const place = document.getElementById(body.dataset.rows);
  if (!place) return;
  place.hidden = count === 0;
  place.querySelector("button").textContent = `Show ${count} new`;
}

function release(body) {
  const fresh = waiting.get(body);
  if (!fresh) return;
  waiting.delete(body);
  children(body, fresh);
  announce(body, 0);
  document.dispatchEvent(new CustomEvent("htmx:afterSwap", { detail: { target: body } }));
}

export function releaseRows() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show-rows]");
    if (button) release(document.getElementById(button.dataset.showRows));
  });
  for (const kind of ["pointerout", "focusout"]) {
    document.addEventListener(kind, (event) => {
      const body = event.target.closest?.("tbody[data-rows]");
      if (body) setTimeout(() => watched(body) || release(body), 300);
    });
  }
}
