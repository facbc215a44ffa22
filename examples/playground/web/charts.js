// The charts: uPlot on the frames of the last minute.
/* global uPlot */

const seconds = 60;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const sources = {
  admitted: { lease: ["admitted: lease", "--c3"], redis: ["admitted: Redis", "--c1"], degraded: ["admitted: outage policy", "--c2"] },
  refused: {
    denied: ["refused: known here", "--c6"], redis: ["refused: Redis", "--c9"],
    prefilter: ["refused: local share", "--c4"], degraded: ["refused: outage policy", "--c5"],
  },
};

const sum = (list) => (list || []).reduce((a, b) => a + b, 0);
const pad = (frames, first) => frames.map((f) => f.t - first);

// stack adds each list to the one below it.
function stack(lists) {
  return lists.map((_, k) => lists[0].map((_, i) => lists.slice(0, k + 1).reduce((total, l) => total + l[i], 0)));
}

// A view says what a chart shows: its series and their values.
const views = {
  total: {
    stacked: false,
    series: () => [["admitted", "--c1"], ["refused", "--c6"], ["limit", "--limit", [6, 4]]],
    data: (frames) => [frames.map((f) => sum(f.allowed)), frames.map((f) => sum(f.refused)), frames.map((f) => f.limit)],
  },
  sources: {
    stacked: true,
    series: () => [...Object.values(sources.admitted), ...Object.values(sources.refused)],
    data: (frames) => [
      ...Object.keys(sources.admitted).map((s) => frames.map((f) => f.admittedBy[s] || 0)),
      ...Object.keys(sources.refused).map((s) => frames.map((f) => f.refusedBy[s] || 0)),
    ],
  },
  instances: {
    stacked: true,
    series: (n) => Array.from({ length: n }, (_, i) => [`instance ${i + 1}`, `--c${i + 1}`]),
    data: (frames, n) => Array.from({ length: n }, (_, i) => frames.map((f) => f.allowed[i] || 0)),
  },
  calls: {
    stacked: false,
    series: () => [["calls per second, mean of a second", "--c7"]],
    data: (frames) => [frames.map((_, i) => {
      const last = frames.slice(Math.max(0, i - 9), i + 1);
      return last.reduce((total, f) => total + sum(f.calls), 0) * 10 / last.length;
    })],
  },
};

class Chart {
  constructor(name) {
    this.view = views[name];
    this.place = document.getElementById(`chart-${name}`);
    this.instances = 0;
  }

  // build makes the chart anew: for another number of instances, or other colours.
  build() {
    this.plot?.destroy();
    const { stacked } = this.view;
    const series = this.view.series(this.instances).map(([label, colour, dash]) => ({
      label, stroke: style(colour), width: 1.5, dash, points: { show: false },
      fill: stacked ? style(colour) + "99" : undefined,
    }));
    const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 0.5 }, ticks: { stroke: style("--line") } };
    this.plot = new uPlot({
      width: this.place.clientWidth || 300, height: 210,
      scales: { x: { time: false, range: () => [-seconds, 0] }, y: { range: (_, __, max) => [0, Math.max(max, 1) * 1.1] } },
      axes: [{ ...axis, values: (_, at) => at.map((v) => `${v} s`) }, { ...axis, size: 50 }],
      series: [{}, ...series],
      bands: stacked ? series.slice(1).map((_, k) => ({ series: [k + 2, k + 1] })) : [],
      legend: { live: false }, cursor: { show: false },
    }, [[], ...series.map(() => [])], this.place);
  }

  draw(frames, instances) {
    if (!this.plot || this.instances !== instances) {
      this.instances = instances;
      this.build();
    }
    const last = frames.length ? frames[frames.length - 1].t : 0;
    const lists = this.view.data(frames, instances);
    this.plot.setData([pad(frames, last), ...(this.view.stacked ? stack(lists) : lists)]);
  }

  // describe says in words what is drawn.
  describe(frames) {
    const last = frames.slice(-10);
    const lists = this.view.data(last, this.instances);
    const names = this.view.series(this.instances).map((s) => s[0]);
    const mean = (l) => Math.round(l.reduce((a, b) => a + b, 0) / (l.length || 1));
    this.place.setAttribute("aria-label", `Line chart. Mean of the last second: ${names.map((n, i) => `${n} ${mean(lists[i])}`).join(", ")}.`);
  }

  resize() {
    this.plot?.setSize({ width: this.place.clientWidth, height: 210 });
  }
}

export class Charts {
  constructor() {
    this.all = Object.keys(views).map((name) => new Chart(name));
    const rebuild = () => this.all.forEach((c) => c.plot && c.build());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
    new ResizeObserver(() => this.all.forEach((c) => c.resize())).observe(document.body);
  }

  draw(frames, instances) { this.all.forEach((c) => c.draw(frames, instances)); }
  describe(frames) { this.all.forEach((c) => c.describe(frames)); }
}
