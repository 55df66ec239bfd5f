// A live log: the server renders the lines; this script fetches new ones, filters, searches and follows them.
//
//   <section data-log="URL of the lines" data-after="cursor">
//     <input data-log-search> <select data-log-level> <input type=checkbox data-log-follow>
//     <ol data-log-lines data-keep> <li data-level="INFO">…
//   </section>
//
// The URL returns <li>s, the next cursor in the header Holdfast-After, and "Holdfast-More: 1" if there are more.

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const MOST = 5000; // lines in the page; older ones are removed, but stay on the server
const ROUNDS = 20; // pages per fetch
const started = new WeakSet();
const busy = new WeakSet();

export function startLogs(root) {
  for (const log of root.querySelectorAll("[data-log]")) {
    if (started.has(log)) continue;
    started.add(log);
    for (const kind of ["input", "change"]) log.addEventListener(kind, () => sift(log));
    const lines = log.querySelector("[data-log-lines]");
    lines.addEventListener("scroll", () => {
      const follow = log.querySelector("[data-log-follow]");
      const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 24;
      if (follow && follow.checked && !atEnd && !lines.dataset.moving) follow.checked = false;
      delete lines.dataset.moving;
    });
    sift(log);
  }
}

export function followLogs() {
  for (const log of document.querySelectorAll("[data-log]")) fetchLines(log);
}

async function fetchLines(log) {
  if (busy.has(log)) return;
  busy.add(log);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const answer = await fetch(`${log.dataset.log}?after=${encodeURIComponent(log.dataset.after)}`);
      if (!answer.ok) return;
      const text = await answer.text();
      const after = answer.headers.get("Holdfast-After");
      if (after) log.dataset.after = after;
      if (text.trim()) add(log, text);
      if (answer.headers.get("Holdfast-More") !== "1") return;
    }
  } catch {
    // the page already shows that the connection is lost
  } finally {
    busy.delete(log);
  }
}

function add(log, text) {
  const lines = log.querySelector("[data-log-lines]");
  const template = document.createElement("template");
  template.innerHTML = text; // rendered and escaped by the server
  lines.append(template.content);
  while (lines.children.length > MOST) lines.firstElementChild.remove();
  sift(log);
  document.dispatchEvent(new CustomEvent("htmx:afterSwap", { detail: { target: lines } }));
}

function sift(log) {
  const lines = log.querySelector("[data-log-lines]");
  const wanted = (log.querySelector("[data-log-search]")?.value ?? "").toLowerCase();
  const least = LEVELS.indexOf(log.querySelector("[data-log-level]")?.value ?? "DEBUG");
  let shown = 0;
  for (const line of lines.children) {
    const level = LEVELS.indexOf(line.dataset.level);
    const fits = (level < 0 || level >= least) && (!wanted || line.textContent.toLowerCase().includes(wanted));
    line.hidden = !fits;
    if (fits) shown++;
  }
  const count = log.querySelector("[data-log-count]");
  const all = `${lines.children.length} line${lines.children.length === 1 ? "" : "s"}`;
  if (count) count.textContent = shown === lines.children.length ? all : `${shown} of ${all}`;
  const follow = log.querySelector("[data-log-follow]");
  if (follow?.checked) {
    lines.dataset.moving = "";
    lines.scrollTop = lines.scrollHeight;
  }
}
