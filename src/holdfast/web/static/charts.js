// Charts: each <figure data-chart> draws lines from the JSON at its data-source.
//
//   <figure class="chart" data-chart="wait" data-source="…/series?span=1h" data-lines="p50 p95 p99" data-unit="s">
//     <div class="chart-box" data-keep role="img" aria-label="…"></div>
//   </figure>
//
// The JSON is {"at": [seconds…], "wait.p50": [number|null…], …}. The key of a line is "<chart>.<line>" or "<line>". A
// chart with its own times has them as "<chart>.at". "since" and "until" are the ends of the time axis.

import { duration, shortTime } from "./times.js";

const drawn = new Map(); // box → its plot
const spans = new WeakMap(); // box → start and end of its time axis
const shown = new WeakMap(); // figure → the source of its data
const AGAIN = 15000; // milliseconds; the rollups are not updated more often
let askedAt = 0;

export function drawCharts(root) {
  const figures = [...root.querySelectorAll("[data-chart]")];
  for (const box of [...drawn.keys()]) if (!box.isConnected) (drawn.get(box).destroy(), drawn.delete(box));
  const asked = figures.filter((figure) => figure.dataset.source !== shown.get(figure));
  if (asked.length && window.uPlot) load(asked);
}

export function refreshCharts() {
  const now = performance.now();
  if (now - askedAt < AGAIN || !window.uPlot) return;
  load([...document.querySelectorAll("[data-chart]")]);
}

setInterval(() => document.hidden || refreshCharts(), AGAIN);
document.addEventListener("themechange", () => redraw());
let resizing = null;
window.addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    for (const [box, plot] of drawn) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  }, 150);
});

const answers = new Map(); // source → its last response

async function load(figures) {
  askedAt = performance.now();
  for (const source of new Set(figures.map((figure) => figure.dataset.source))) {
    try {
      const answer = await fetch(source, { headers: { Accept: "application/json" } });
      if (!answer.ok) continue;
      answers.set(source, await answer.json());
    } catch {
      continue; // the page already shows that the connection is lost
    }
    for (const figure of figures.filter((one) => one.dataset.source === source)) draw(figure, answers.get(source));
  }
}

function redraw() {
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const box = figure.querySelector(".chart-box");
    drawn.get(box)?.destroy();
    drawn.delete(box);
    const answer = answers.get(figure.dataset.source);
    if (answer) draw(figure, answer);
  }
}

function draw(figure, answer) {
  const { chart, unit } = figure.dataset;
  const lines = figure.dataset.lines.split(" ");
  const data = [answer[`${chart}.at`] ?? answer.at, ...lines.map((line) => answer[`${chart}.${line}`] ?? answer[line] ?? [])];
  const box = figure.querySelector(".chart-box");
  shown.set(figure, figure.dataset.source);
  tell(figure, lines, data, unit);
  spans.set(box, [answer.since, answer.until]);
  const plot = drawn.get(box);
  if (plot) plot.setData(data);
  else drawn.set(box, new uPlot(options(figure, box, lines, unit), data, box));
}

// Shows the last value of each line beside the chart, also for screen readers.
function tell(figure, lines, data, unit) {
  const said = lines.map((line, number) => {
    const values = data[number + 1];
    const last = values.findLast((value) => value !== null && value !== undefined);
    const text = last === undefined ? "–" : inUnit(last, unit);
    const place = figure.querySelector(`[data-last="${line}"]`);
    if (place) place.textContent = text;
    return `${line} ${text}`;
  });
  const box = figure.querySelector(".chart-box");
  box.setAttribute("aria-label", `${figure.dataset.title ?? figure.dataset.chart}, latest: ${said.join(", ")}`);
}

// Shows the values at the pointer instead of the last ones.
function point(figure, lines, unit, plot) {
  const { left, idx } = plot.cursor;
  const time = figure.querySelector("[data-at]");
  if (left < 0 || idx === null || idx === undefined) {
    if (time?.textContent) (time.textContent = ""), tell(figure, lines, plot.data, unit);
    return;
  }
  lines.forEach((line, number) => {
    const value = plot.data[number + 1][idx];
    const place = figure.querySelector(`[data-last="${line}"]`);
    if (place) place.textContent = value === null || value === undefined ? "–" : inUnit(value, unit);
  });
  if (time) time.textContent = shortTime(plot.data[0][idx] * 1000);
}

export function inUnit(value, unit) {
  if (unit === "s") return duration(value);
  if (unit === "%") return `${(value * 100).toFixed(value > 0.999 || value === 0 ? 0 : 1)} %`;
  if (value !== 0 && Math.abs(value) < 10) return String(Math.round(value * 100) / 100);
  return Math.round(value).toLocaleString("en");
}

const COLOURS = {
  succeeded: "--succeeded", failed: "--failed", p50: "--running", p95: "--queued", p99: "--failed",
  rate: "--succeeded", depth: "--queued", running: "--running", oldest: "--queued",
};

// A single value draws no line, so short lines also show their points.
function few(plot, series) {
  return plot.data[series].reduce((count, value) => count + (value !== null), 0) < 20;
}

const WHOLE = [1, 2, 5].flatMap((one) => [0, 1, 2, 3, 4, 5, 6].map((tens) => one * 10 ** tens)).sort((a, b) => a - b);

function options(figure, box, lines, unit) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const font = `11px ${style.getPropertyValue("--sans")}`;
  const axis = { stroke: colour("--muted"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    width: box.clientWidth || 300,
    height: box.clientHeight || 150,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { setCursor: [(plot) => point(figure, lines, unit, plot)] },
    scales: {
      x: { range: (plot, low, high) => spans.get(box) ?? [low, high] },
      y: { range: (plot, low, high) => (unit === "%" ? [0, 1] : [0, (high || 1) * 1.1]) },
    },
    axes: [
      { ...axis, size: 24, space: 70, values: (plot, ticks) => ticks.map((at) => shortTime(at * 1000)) },
      {
        ...axis,
        size: unit === "s" ? 74 : 58,
        space: 34,
        ...(figure.dataset.chart === "depth" && { incrs: WHOLE }), // runs are whole numbers
        values: (plot, ticks) => ticks.map((value) => (unit === "%" ? `${Math.round(value * 100)} %` : inUnit(value, unit))),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line,
        stroke: colour(COLOURS[line] ?? "--accent"),
        width: 1.6,
        dash: line === "p95" ? [6, 3] : line === "p99" ? [2, 3] : undefined,
        points: { show: few, size: 5 },
        spanGaps: false,
      })),
    ],
  };
}
