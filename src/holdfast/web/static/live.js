// Keeps pages live. The server renders everything; this script only refreshes a page when its data changes, updates
// ages and durations, and follows logs.
//
//   <main id="x" data-live="runs queues" hx-get="" hx-trigger="live" hx-select="#x" hx-swap="morph">
//
// When one of its topics changes, the element fetches its page again and updates what is different, at most once every
// data-every milliseconds.

import { dressTimes, tickTimes } from "./times.js";
import { morphSwap, releaseRows } from "./morph.js";
import { startPreferences } from "./preferences.js";
import { startDialogs } from "./dialogs.js";
import { drawCharts, refreshCharts } from "./charts.js";
import { followLogs, startLogs } from "./log.js";

const QUIET = 400; // milliseconds: changes come in bursts, so wait for the rest
const LEAST = 1000; // milliseconds between two refreshes of one element
const LOST_AFTER = 4000; // milliseconds: shorter interruptions are not shown

// htmx reads hx-select and hx-swap when a response arrives. A live update may remove them from the element before that,
// and htmx would then insert a whole page into the element. So each request remembers both.
const uses = new WeakMap(); // request → its hx-select and hx-swap
let inherited;

htmx.defineExtension("morph", {
  init: (api) => (inherited = api.getClosestAttributeValue),
  isInlineSwap: (style) => style === "morph",
  handleSwap: (style, target, fragment) => style === "morph" && morphSwap(target, fragment),
  onEvent: (name, { detail }) => {
    if (name === "htmx:beforeRequest") {
      const select = inherited(detail.elt, "hx-select") ?? "unset";
      uses.set(detail.xhr, { select, swap: inherited(detail.elt, "hx-swap") ?? htmx.config.defaultSwapStyle });
    } else if (name === "htmx:beforeSwap") {
      const { select, swap } = uses.get(detail.xhr);
      detail.selectOverride ??= select;
      detail.swapOverride ??= swap;
    }
  },
});

document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="csrf"]')?.content;
  if (token) event.detail.headers["X-CSRF-Token"] = token;
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) location.reload(); // signed out: reloading leads to the sign-in page
});
document.addEventListener("htmx:afterSwap", (event) => dress(event.detail.target));

function dress(root) {
  dressTimes(root);
  drawCharts(root);
  startLogs(root);
}

// Signals -----------------------------------------------------------------------------------------------------------

const stale = new Set(); // elements to refresh when the page becomes visible
const refreshedAt = new WeakMap();
let timer = null;

function changed(topics) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const wanted = element.dataset.live.split(" ");
    if (topics === null || wanted.some((topic) => topics.includes(topic))) stale.add(element);
  }
  soon(QUIET);
}

function soon(delay) {
  if (timer === null && stale.size && !document.hidden) timer = setTimeout(refresh, delay);
}

function refresh() {
  timer = null;
  if (document.hidden) return;
  const now = performance.now();
  for (const element of [...stale]) {
    if (!element.isConnected) stale.delete(element);
    else if (document.querySelector("dialog[open]")) continue; // don't change the page behind an open dialog
    else if (now - (refreshedAt.get(element) ?? -Infinity) >= Number(element.dataset.every ?? LEAST)) {
      stale.delete(element);
      refreshedAt.set(element, now);
      htmx.trigger(element, "live");
    }
  }
  followLogs();
  refreshCharts();
  soon(LEAST);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    tickTimes();
    soon(0);
  }
});

// The connection ----------------------------------------------------------------------------------------------------

let source = null;
let lost = null;
let wasLost = false;

function connect() {
  const url = document.body.dataset.liveUrl;
  const topics = [...document.querySelectorAll("[data-live]")].flatMap((element) => element.dataset.live.split(" "));
  if (!url || !topics.length) return;
  source = new EventSource(`${url}?topics=${encodeURIComponent([...new Set(topics)].sort().join(","))}`);
  source.addEventListener("open", found);
  source.addEventListener("changed", (event) => changed(event.data.split(/[\s,]+/)));
  source.addEventListener("error", () => {
    lost ??= setTimeout(() => tellLost(true), LOST_AFTER);
    // Browsers don't reconnect after an error response, so we do.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, LOST_AFTER);
  });
}

function found() {
  clearTimeout(lost);
  lost = null;
  if (wasLost) changed(null); // we may have missed changes in the meantime
  tellLost(false);
}

function tellLost(is) {
  wasLost = is;
  const alert = document.getElementById("connection");
  if (alert) alert.hidden = !is;
}

window.addEventListener("pagehide", () => source?.close());
window.addEventListener("pageshow", (event) => event.persisted && (connect(), changed(null)));

// Keys --------------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = document.querySelector("[data-find]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
});

// On a phone the navigation is wider than the screen: scroll to the current entry.
const here = document.querySelector(".navigation [aria-current]");
here?.closest(".navigation").scrollTo({ left: here.offsetLeft - 60 });

startPreferences(() => dress(document));
startDialogs();
releaseRows();
dress(document);
setInterval(tickTimes, 1000);
connect();
