// The page: listens to the stream of the playground and shows what it says.
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";

const kept = 600; // frames of 100 ms
const $ = (id) => document.getElementById(id);
const sum = (list) => list.reduce((a, b) => a + b, 0);
const charts = new Charts();
const controls = new Controls();
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let frames = [];
let state;
let count = 0;

// say changes the status, which screen readers announce, only if it is another one.
function say(text, bad) {
  const status = $("status");
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("bad", bad);
}

function status(f) {
  const degraded = f.degraded.filter(Boolean).length;
  const n = f.degraded.length;
  say(degraded
    ? `${degraded} of ${n} instances degraded: each goes on with its part of the limit`
    : `All ${n} instances keep one limit`, degraded > 0);
}

function put(id, text) {
  if ($(id).textContent !== String(text)) $(id).textContent = text;
}

// rows keeps a table's rows, so that the focus on a button in it stays.
function rows(body, n, columns) {
  while (body.rows.length > n) body.deleteRow(-1);
  while (body.rows.length < n) {
    const row = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    row.append(head);
    for (let i = 1; i < columns; i++) row.insertCell();
  }
  return [...body.rows];
}

function cell(row, i, text, bad) {
  const c = row.cells[i];
  if (c.textContent !== String(text)) c.textContent = text;
  c.classList.toggle("bad", Boolean(bad));
}

function tables(last) {
  const f = last[last.length - 1];
  rows($("worst"), f.worst.length, 4).forEach((row, i) => {
    const w = f.worst[i];
    cell(row, 0, w.window < 1 ? `${w.window * 1000} ms` : `${w.window} s`);
    cell(row, 1, w.paid, w.paid > w.bound);
    cell(row, 2, w.bound);
    cell(row, 3, w.all);
  });
  rows($("instances"), f.allowed.length, 7).forEach((row, i) => {
    const per = (name) => Math.round(last.reduce((t, x) => t + (x[name][i] || 0), 0) * 10 / last.length);
    cell(row, 0, i + 1);
    cell(row, 1, f.breakers[i], f.breakers[i] !== "closed");
    cell(row, 2, f.degraded[i] ? "outage policy" : "leases and Redis", f.degraded[i]);
    cell(row, 3, per("allowed"));
    cell(row, 4, per("refused"));
    cell(row, 5, per("calls"));
    const button = row.cells[6].firstChild || row.cells[6].appendChild(document.createElement("button"));
    const what = f.cut[i] ? "mend" : "cut";
    if (button.dataset.what !== what) {
      Object.assign(button.dataset, { n: i + 1, what });
      button.type = "button";
      button.textContent = f.cut[i] ? "Mend" : "Cut off";
      button.setAttribute("aria-label", `${button.textContent}: instance ${i + 1}`);
    }
  });
}

function tiles(last) {
  const f = last[last.length - 1];
  const per = (name) => Math.round(last.reduce((t, x) => t + sum(x[name]), 0) * 10 / last.length);
  put("admitted", per("allowed"));
  put("refused", per("refused"));
  put("calls", per("calls"));
  put("limit-now", Math.round(f.limit * 10));
  put("breakers", `${f.breakers.filter((b) => b === "closed").length} of ${f.breakers.length}`);
}

function show() {
  if (!frames.length) return;
  const last = frames.slice(-10);
  const f = last[last.length - 1];
  status(f);
  tiles(last);
  tables(last);
  if (!calm.matches || count % 10 === 0) charts.draw(frames, f.allowed.length);
  if (count++ % 50 === 0) charts.describe(frames);
}

function line(l) {
  const item = document.createElement("li");
  item.dataset.kind = l.kind;
  item.innerHTML = "<time></time> <b></b> <span></span>";
  const [at, who, text] = item.children;
  at.textContent = `${l.t.toFixed(1)} s`;
  who.textContent = l.who;
  text.textContent = l.text;
  $("log").prepend(item);
  while ($("log").children.length > 200) $("log").lastChild.remove();
}

const stream = new EventSource("events");
stream.addEventListener("state", (e) => {
  state = JSON.parse(e.data);
  put("where", `Redis: ${state.where}`);
  put("redis", state.redis);
  $("redis").classList.toggle("bad", state.redis !== "running");
  controls.show(state);
});
stream.addEventListener("history", (e) => {
  const history = JSON.parse(e.data);
  frames = history.frames || [];
  $("log").replaceChildren();
  (history.lines || []).forEach(line);
  show();
});
stream.addEventListener("frame", (e) => {
  frames.push(JSON.parse(e.data));
  if (frames.length > kept) frames = frames.slice(-kept);
  show();
});
stream.addEventListener("line", (e) => line(JSON.parse(e.data)));
stream.addEventListener("error", () => say("The playground does not answer; trying again", true));
