// Uploads files that are dropped on the page or chosen, one after another.
//
//   {{ drop(…) }} in parts.html renders the form. Without this script, the form uploads one file.
//   data-then is the URL of an uploaded file; {id} is replaced by the id in the response.

const token = () => document.querySelector('meta[name="csrf"]')?.content ?? "";
const box = () => document.querySelector("form.drop");

const input = () => box().querySelector('input[type="file"]');

// A refresh of the page may replace the attributes of the form.
function start() {
  if (box()) input().multiple = true;
}

document.addEventListener("submit", (event) => {
  if (event.target !== box()) return;
  event.preventDefault();
  send([...input().files]).then(() => event.target.reset());
});

for (const kind of ["dragenter", "dragover"])
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes("Files") || !box()) return;
    event.preventDefault();
    box().classList.add("over");
  });
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) box()?.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  box()?.classList.remove("over");
  if (!event.dataTransfer?.files.length || !box()) return;
  event.preventDefault();
  send([...event.dataTransfer.files]);
});

async function send(files) {
  const form = box();
  const most = Number(form.dataset.most);
  for (const file of files) {
    const row = tell(file.name, "sending…");
    if (file.size > most) {
      refuse(row, "too large");
      continue;
    }
    const body = new FormData(form);
    body.delete(input().name);
    body.append(input().name, file);
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json", "X-CSRF-Token": token() } });
      const told = await answer.json();
      if (!answer.ok) refuse(row, told.detail ?? "refused");
      else {
        const link = document.createElement("a");
        link.href = form.dataset.then.replace("{id}", encodeURIComponent(told.id));
        link.textContent = "uploaded";
        row.lastElementChild.replaceChildren(link);
        if (files.length === 1) location.assign(link.href);
      }
    } catch {
      refuse(row, "connection lost");
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
  box().querySelector(".uploads").append(row);
  return row;
}

function refuse(row, why) {
  row.classList.add("refused");
  row.lastElementChild.textContent = why;
}

document.addEventListener("htmx:afterSwap", start);
start();
