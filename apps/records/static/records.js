// Files are dropped and sent one after the other; a field shows its place in the text, and a place its field.

const token = () => document.querySelector('meta[name="csrf"]')?.content ?? "";

// Sending ----------------------------------------------------------------------------------------------------------

function startDrop() {
  const form = document.getElementById("drop");
  if (!form || form.classList.contains("scripted")) return;
  form.classList.add("scripted");
  const input = form.querySelector('input[type="file"]');
  input.multiple = true;
  for (const kind of ["dragenter", "dragover"])
    document.addEventListener(kind, (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      document.getElementById("drop")?.classList.add("over");
    });
  for (const kind of ["dragleave", "drop"])
    document.addEventListener(kind, (event) => {
      if (kind === "dragleave" && event.relatedTarget) return;
      document.getElementById("drop")?.classList.remove("over");
    });
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length || !document.getElementById("drop")) return;
    event.preventDefault();
    send([...event.dataTransfer.files]);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send([...input.files]).then(() => form.reset());
  });
}

async function send(files) {
  const form = document.getElementById("drop");
  const most = Number(form.dataset.most);
  for (const file of files) {
    const row = tell(file.name, "sending…");
    if (file.size > most) {
      refuse(row, "too large");
      continue;
    }
    const body = new FormData();
    body.append("file", file);
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json", "X-CSRF-Token": token() } });
      const told = await answer.json();
      if (!answer.ok) refuse(row, told.detail ?? "refused");
      else {
        const link = document.createElement("a");
        link.href = `/documents/${encodeURIComponent(told.id)}`;
        link.textContent = "handed in";
        row.lastElementChild.replaceChildren(link);
        if (files.length === 1) location.assign(link.href);
      }
    } catch {
      refuse(row, "the connection was lost");
    }
  }
}

function tell(name, words) {
  const row = document.createElement("li");
  for (const text of [name, words]) {
    const part = document.createElement("span");
    part.textContent = text;
    row.append(part);
  }
  document.getElementById("uploads").append(row);
  return row;
}

function refuse(row, why) {
  row.classList.add("refused");
  row.lastElementChild.textContent = why;
}

// Fields and their places --------------------------------------------------------------------------------------------

const marksOf = (number) => document.querySelectorAll(`.field[data-field~="${CSS.escape(number)}"]`);

function show(number) {
  for (const one of document.querySelectorAll(".found")) one.classList.remove("found");
  if (number === null) return;
  for (const mark of marksOf(number)) mark.classList.add("found");
  document.querySelector(`[data-place="${CSS.escape(number)}"]`)?.classList.add("found");
}

function numberAt(target) {
  if (!(target instanceof Element)) return null;
  const row = target.closest("[data-place]");
  if (row?.classList.contains("field-row")) return row.dataset.place;
  const mark = target.closest(".field[data-field]");
  return mark ? mark.dataset.field.trim().split(" ").pop() : null;
}

function goTo(row) {
  const [mark] = marksOf(row.dataset.place);
  if (mark) mark.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  else location.search = `?first=${row.dataset.page}`;
}

document.addEventListener("mouseover", (event) => show(numberAt(event.target)));
document.addEventListener("focusin", (event) => {
  const number = numberAt(event.target);
  if (number !== null) show(number);
});
document.addEventListener("click", (event) => {
  const row = event.target instanceof Element ? event.target.closest(".field-row") : null;
  if (row) goTo(row);
});
document.addEventListener("htmx:afterSwap", startDrop);
startDrop();
