// The controls: sliders for the settings, buttons for what breaks Redis.

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000];
const percent = (v) => `${Math.round(v * 100)} %`;
const perSecond = (v) => `${v}/s`;

// Each setting: its label, the values of its slider, and how one is written.
const settings = {
  live: {
    limit: ["Limit", steps, perSecond],
    burst: ["Burst", steps, String],
    load: ["Load", [0, ...steps], perSecond],
    skew: ["Skew", Array.from({ length: 11 }, (_, i) => i / 10), (v) => (v ? `${percent(v)} to one` : "even")],
  },
  fleet: {
    instances: ["Instances", Array.from({ length: 12 }, (_, i) => i + 1), String],
    share: ["Local share", [0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1], percent],
    algorithm: ["Algorithm", ["token bucket", "leaky bucket", "fixed window", "sliding log", "rolling window"]],
    horizon: ["Horizon", [20, 50, 100, 200, 500, 1000, 2000, 5000], (v) => `${v} ms`],
  },
};

async function post(path, body) {
  const error = document.getElementById("error");
  try {
    const response = await fetch(path, { method: "POST", body: body && JSON.stringify(body) });
    error.textContent = (await response.json()).error || "";
  } catch (e) {
    error.textContent = `The playground does not answer: ${e.message}`;
  }
}

// nearest is the place of the value that is closest.
const nearest = (values, v) => values.reduce((best, x, i) => (Math.abs(x - v) < Math.abs(values[best] - v) ? i : best), 0);

class Slider {
  constructor(name, [label, values, text], place) {
    Object.assign(this, { values, text });
    const row = document.createElement("div");
    row.className = "control";
    row.innerHTML = "<label></label><input type=range min=0 step=1><output></output>";
    const [caption, input, output] = row.children;
    caption.textContent = label;
    caption.htmlFor = input.id = `set-${name}`;
    output.htmlFor = input.id;
    input.max = values.length - 1;
    input.addEventListener("input", () => this.write(values[input.value]));
    input.addEventListener("change", () => post("settings", { [name]: values[input.value] }));
    Object.assign(this, { input, output });
    place.append(row);
  }

  write(v) {
    this.output.textContent = this.text(v);
    this.input.setAttribute("aria-valuetext", this.text(v));
  }

  show(v) {
    this.input.value = nearest(this.values, v);
    this.write(v);
  }
}

class Choice {
  constructor(name, [label, values], place) {
    const row = document.createElement("div");
    row.className = "control";
    row.innerHTML = "<label></label><select></select>";
    const [caption, input] = row.children;
    caption.textContent = label;
    caption.htmlFor = input.id = `set-${name}`;
    for (const v of values) input.add(new Option(v));
    input.addEventListener("change", () => post("settings", { [name]: input.value }));
    this.input = input;
    place.append(row);
  }

  show(v) {
    this.input.value = v;
  }
}

export class Controls {
  constructor() {
    this.sliders = {};
    for (const group of ["live", "fleet"]) {
      for (const [name, setting] of Object.entries(settings[group])) {
        this.sliders[name] = new (setting.length < 3 ? Choice : Slider)(name, setting, document.getElementById(group));
      }
    }
    document.getElementById("settings").addEventListener("submit", (e) => e.preventDefault());
    this.buttons = [...document.querySelectorAll("[data-action]")];
    for (const b of this.buttons) {
      b.addEventListener("click", () => b.getAttribute("aria-disabled") === "true" || post(`do/${b.dataset.action}`));
    }
    document.getElementById("instances").addEventListener("click", (e) => {
      const { n, what } = e.target.dataset;
      if (n) post(`instances/${n}/${what}`);
    });
  }

  // show takes over the state. A button that makes no sense stays in the order of
  // the Tab key and says why.
  show(state) {
    for (const [name, slider] of Object.entries(this.sliders)) slider.show(state.settings[name]);
    const list = document.getElementById("reasons");
    list.replaceChildren();
    for (const b of this.buttons) {
      const why = state.cannot[b.dataset.action];
      b.setAttribute("aria-disabled", String(Boolean(why)));
      b.removeAttribute("aria-describedby");
      if (!why) continue;
      const item = document.createElement("li");
      item.id = `why-${b.dataset.action}`;
      item.textContent = `${b.textContent}: ${why}`;
      list.append(item);
      b.setAttribute("aria-describedby", item.id);
    }
  }
}
