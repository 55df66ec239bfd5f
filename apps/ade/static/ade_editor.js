// @ts-check
// The editor of a configuration: each file is a text area, and all files are saved together as a new version.

/** @typedef {import("./ade").Api} Api */
/** @typedef {import("./ade").Problem} Problem */

const editor = /** @type {HTMLElement | null} */ (document.querySelector("[data-editor]"));
if (editor) edit(editor);

/** @param {HTMLElement} editor */
function edit(editor) {
  const notice = /** @type {HTMLElement} */ (editor.querySelector("[data-notice]"));
  const save = /** @type {HTMLButtonElement} */ (editor.querySelector("[data-save]"));
  let changed = false;

  editor.addEventListener("input", () => { changed = true; });
  window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  document.addEventListener("submit", () => { changed = false; });
  editor.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    if (!button) return;
    if (button.hasAttribute("data-add-file")) add(editor);
    // Keep at least one file: `add` copies its elements for a new file.
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
      if ("code" in answer) return show(notice, answer.detail, true);
      changed = false;
      const same = String(answer.version) === editor.dataset.version;
      if (same) return show(notice, "No new version was saved, because no file has changed.", false);
      location.assign(location.pathname);
    } catch (error) {
      show(notice, `The files were not saved: ${error}`, true);
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
    if (path in files) throw new Error(`two files have the path ${path}`);
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

/** @param {HTMLElement} notice @param {string} text @param {boolean} bad */
function show(notice, text, bad) {
  notice.textContent = text;
  notice.classList.toggle("bad", bad);
  notice.hidden = false;
}
