// @ts-check
// The editor of a configuration: files as text areas, saved whole as a new version.

/** @typedef {import("./ade").Api} Api */
/** @typedef {import("./ade").Problem} Problem */

const editor = /** @type {HTMLElement | null} */ (document.querySelector("[data-editor]"));
if (editor) edit(editor);

/** @param {HTMLElement} editor */
function edit(editor) {
  const said = /** @type {HTMLElement} */ (editor.querySelector("[data-said]"));
  const save = /** @type {HTMLButtonElement} */ (editor.querySelector("[data-save]"));
  let changed = false;

  editor.addEventListener("input", () => { changed = true; });
  window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  document.addEventListener("submit", () => { changed = false; });
  editor.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    if (!button) return;
    if (button.hasAttribute("data-add-file")) add(editor);
    // One stays: a new file is made after its likeness.
    if (button.hasAttribute("data-remove-file") && editor.querySelectorAll("[data-file]").length > 1) {
      button.closest("[data-file]")?.remove();
      changed = true;
    }
  });
  editor.addEventListener("keydown", (event) => {
    const text = event.target;
    if (event.key !== "Tab" || event.shiftKey || !(text instanceof HTMLTextAreaElement)) return;
    if (text.selectionStart !== text.selectionEnd) return;
    event.preventDefault();
    text.setRangeText("    ", text.selectionStart, text.selectionEnd, "end");
  });

  save.addEventListener("click", async () => {
    save.disabled = true;
    try {
      const answer = await send(editor.dataset.editor ?? "", filesOf(editor));
      if ("code" in answer) return tell(said, answer.detail, true);
      changed = false;
      const same = String(answer.version) === editor.dataset.version;
      if (same) return tell(said, "Nothing has changed: no new version.", false);
      location.assign(location.pathname);
    } catch (error) {
      tell(said, `It was not saved: ${error}`, true);
    } finally {
      save.disabled = false;
    }
  });
}

/** @param {HTMLElement} editor @returns {Api["save_configuration"]["body"]} */
function filesOf(editor) {
  /** @type {Record<string, string>} */
  const files = {};
  for (const file of editor.querySelectorAll("[data-file]")) {
    const path = /** @type {HTMLInputElement} */ (file.querySelector("input")).value.trim();
    const text = /** @type {HTMLTextAreaElement} */ (file.querySelector("textarea")).value;
    if (path in files) throw new Error(`two files are called ${path}`);
    if (path) files[path] = text;
  }
  return { files };
}

/**
 * @param {string} url
 * @param {Api["save_configuration"]["body"]} body
 * @returns {Promise<Api["save_configuration"]["answer"] | Problem>}
 */
async function send(url, body) {
  const csrf = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="csrf"]'));
  const response = await fetch(url, {
    method: "PUT",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": csrf?.content ?? "" },
    body: JSON.stringify(body),
  });
  return response.json();
}

/** @param {HTMLElement} editor */
function add(editor) {
  const files = editor.querySelectorAll("[data-file]");
  const last = files[files.length - 1];
  const copy = /** @type {HTMLElement} */ (last.cloneNode(true));
  const path = /** @type {HTMLInputElement} */ (copy.querySelector("input"));
  const text = /** @type {HTMLTextAreaElement} */ (copy.querySelector("textarea"));
  path.value = "";
  text.value = "";
  text.setAttribute("aria-label", "Text of the new file");
  last.after(copy);
  path.focus();
}

/** @param {HTMLElement} said @param {string} words @param {boolean} bad */
function tell(said, words, bad) {
  said.textContent = words;
  said.classList.toggle("bad", bad);
  said.hidden = false;
}
