// Times: the server writes <time datetime> in UTC; this script shows them in the user's time zone and updates ages.
//
//   <time datetime="…Z">             date and time
//   <time datetime="…Z" data-form="clock">   time of day, with milliseconds
//   <time datetime="…Z" data-form="age">     3 min ago, in 2 h
//   <time datetime="…Z" data-form="since">   how long since then: 3 min 20 s

const rendered = Date.parse(document.documentElement.dataset.now ?? "") || Date.now();
const skew = rendered - Date.now(); // ages use the server's clock, not this machine's

export function zone() {
  const chosen = localStorage.getItem("holdfast.zone") ?? "UTC";
  return chosen === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : chosen;
}

let formats = null;

export function zoneChanged() {
  formats = null;
}

function format() {
  if (formats) return formats;
  let timeZone = zone();
  try {
    new Intl.DateTimeFormat("en", { timeZone });
  } catch {
    timeZone = "UTC";
  }
  const date = { year: "numeric", month: "2-digit", day: "2-digit" };
  const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const make = (parts) => new Intl.DateTimeFormat("sv-SE", { timeZone, ...parts });
  const name = timeZone === "UTC" ? "UTC" : timeZone.split("/").pop().replaceAll("_", " ");
  formats = {
    name,
    full: make({ ...date, ...clock }),
    clock: make({ ...clock, fractionalSecondDigits: 3 }),
    minute: make({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  };
  return formats;
}

export function shortTime(at) {
  return format().minute.format(at);
}

export function dressTimes(root) {
  const { full, clock, name } = format();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) continue;
    const whole = `${full.format(at)} ${name}`;
    if (element.dataset.form === "clock") write(element, clock.format(at).replace(",", "."));
    else if (!element.dataset.form) write(element, whole);
    if (element.title !== whole) element.title = whole;
  }
  tickTimes(root);
}

export function tickTimes(root = document) {
  if (document.hidden) return;
  const now = Date.now() + skew;
  const scope = root.querySelectorAll ? root : document;
  for (const element of scope.querySelectorAll('time[data-form="age"], time[data-form="since"]')) {
    const seconds = (now - Date.parse(element.dateTime)) / 1000;
    if (Number.isNaN(seconds)) continue;
    write(element, element.dataset.form === "age" ? age(seconds) : duration(Math.max(0, seconds)));
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function age(seconds) {
  const ahead = seconds < 0;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const [amount, unit] =
    size < 60 ? [size, "s"] : size < 3600 ? [size / 60, "min"] : size < 86400 ? [size / 3600, "h"] : [size / 86400, "d"];
  const said = `${Math.floor(amount)} ${unit}`;
  return ahead ? `in ${said}` : `${said} ago`;
}

export function duration(seconds) {
  if (seconds < 0.001) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  const [size, unit, part, smaller] =
    whole < 3600 ? [60, "min", 1, "s"] : whole < 86400 ? [3600, "h", 60, "min"] : [86400, "d", 3600, "h"];
  const rest = Math.floor((whole % size) / part);
  return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${smaller}` : ""}`;
}
