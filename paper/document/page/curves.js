// The interactive chart: choose a cell and methods, and read the values under the pointer.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("curves-data").textContent);
  const root = document.getElementById("explorer");
  if (!data.cells.length) {
    document.getElementById("no-curves").hidden = false;
    return;
  }
  root.hidden = false;

  const AXES = ["env", "mode", "rate", "demos"]; // each choice narrows the next
  const NONE = "No method is chosen."; // shown in place of the curves
  const MARGIN = { top: 12, right: 14, bottom: 42, left: 58 };
  const field = (name) => root.querySelector(`[name=${name}]`);
  const chart = root.querySelector(".chart");
  const list = root.querySelector(".list");
  const methods = Object.fromEntries(data.methods.map((m) => [m.name, m]));
  const envs = Object.fromEntries(data.envs.map((e) => [e.name, e]));
  const rank = {
    env: data.envs.map((e) => e.name),
    mode: data.modes,
  };
  const off = new Set(data.methods.filter((m) => !m.on).map((m) => m.name)); // methods not drawn
  const state = {};
  let view = null; // the drawing: scales, curves, and the elements that follow the pointer

  // ------------------------------------------------------------ numbers and elements

  const minus = (text) => text.replace("-", "\u2212");
  const whole = (x) => minus(x.toLocaleString("en"));
  const short = (x) => x.toLocaleString("en", { notation: "compact" });
  // True if the chart shows returns: by choice, or because the env has no scores.
  const inReturns = () => field("returns").checked || Boolean(envs[state.env].unscored);
  const score = (x) => (inReturns() ? whole(Number(x.toPrecision(4))) : minus(x.toFixed(3)));

  const svg = (name, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const html = (name, attributes = {}, ...children) => {
    const node = Object.assign(document.createElement(name), attributes);
    node.append(...children);
    return node;
  };
  const paint = (node, method) => {
    node.style.setProperty("--light", method.light);
    node.style.setProperty("--dark", method.dark);
    return node;
  };
  const dashes = (method, width) => method.dashes.map((d) => d * width).join(" ");

  // Return four to eight round ticks.
  const ticks = (low, high) => {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  };

  // ------------------------------------------------------------ choices

  // A method that fixes its rate (null) is shown with every rate.
  const fits = (cell, axis) => cell[axis] === null || state[axis] === null || cell[axis] === state[axis];

  const choose = () => {
    AXES.forEach((axis, i) => {
      const fitting = data.cells.filter((cell) => AXES.slice(0, i).every((a) => fits(cell, a)));
      const bound = fitting.filter((cell) => cell.rate !== null); // cells without a rate are only for comparison
      const cells = bound.length ? bound : fitting;
      let values = [...new Set(cells.map((cell) => cell[axis]))].filter((v) => v !== null);
      values.sort((a, b) => (rank[axis] ? rank[axis].indexOf(a) - rank[axis].indexOf(b) : a - b));
      if (!values.length) values = [null];
      const select = field(axis);
      if (!values.includes(state[axis])) state[axis] = values.includes(20) ? 20 : values[0];
      const words = (v) => (v === null ? "each method's own" : axis === "rate" ? `1 in ${v}` : v);
      select.replaceChildren(...values.map((v) => html("option", { value: v ?? "", textContent: words(v) })));
      select.selectedIndex = values.indexOf(state[axis]);
      select.disabled = values.length < 2;
      select.onchange = () => {
        state[axis] = values[select.selectedIndex];
        draw();
      };
    });
  };

  const chosen = () => data.cells.filter((cell) => AXES.every((axis) => fits(cell, axis)));

  const offer = (cells) => {
    const names = cells.map((cell) => cell.method);
    if ([...list.children].map((node) => node.dataset.method).join() === names.join()) return;
    list.replaceChildren(
      ...names.map((name) => {
        const method = methods[name];
        const box = html("input", { type: "checkbox", checked: !off.has(name), value: name });
        box.addEventListener("change", () => {
          box.checked ? off.delete(name) : off.add(name);
          draw();
        });
        const sample = svg("svg", { width: 30, height: 8, "aria-hidden": "true" },
          svg("line", { x1: 1, x2: 29, y1: 4, y2: 4, "stroke-dasharray": dashes(method, 2) }));
        const label = html("label", { className: "check", title: name }, box, sample, method.label);
        label.dataset.method = name;
        return paint(label, method);
      }),
    );
  };

  // ------------------------------------------------------------ drawing

  // Return a cell's curve in the unit shown. A method without env steps is a line across the chart.
  const curve = (cell, end) => {
    const { random, expert, unscored } = envs[cell.env];
    const asSent = unscored || !field("returns").checked;
    const [base, span] = asSent ? [0, 1] : [random, expert - random];
    const level = cell.steps === null;
    const spread = (xs) => (level ? [xs[0], xs[0]] : xs);
    return {
      cell, level,
      method: methods[cell.method],
      steps: level ? [0, end] : data.steps[cell.steps],
      mean: spread(cell.mean.map((x) => base + (span * x) / data.unit)),
      std: cell.std && spread(cell.std.map((x) => Math.abs(span * x) / data.unit)),
      ends: cell.diverged.map(([step, x]) => [step ?? end, base + (span * x) / data.unit]),
    };
  };

  const draw = () => {
    choose();
    const cells = chosen();
    offer(cells);
    const longest = Math.max(...cells.map((c) => (c.steps === null ? 0 : data.steps[c.steps].at(-1))));
    const end = longest || 1;
    const curves = cells.filter((c) => !off.has(c.method)).map((c) => curve(c, end));
    const { random, expert } = envs[state.env];
    const references = inReturns() ? [random, expert] : [0, 1];

    const banded = (c) => field("band").checked && c.std;
    const heights = curves.flatMap((c) => [
      ...(banded(c) ? c.mean.flatMap((m, i) => [m - c.std[i], m + c.std[i]]) : c.mean),
      ...c.ends.map(([, y]) => y),
    ]).concat(references);
    const room = (Math.max(...heights) - Math.min(...heights)) * 0.04;
    const [low, high] = [Math.min(...heights) - room, Math.max(...heights) + room];

    const width = Math.max(280, chart.clientWidth);
    const height = Math.round(Math.min(480, Math.max(280, width * 0.52)));
    const x = (s) => MARGIN.left + (s / end) * (width - MARGIN.left - MARGIN.right);
    const y = (v) => height - MARGIN.bottom - ((v - low) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
    const path = (xs, ys) => xs.map((s, i) => `${x(s).toFixed(1)},${y(ys[i]).toFixed(1)}`).join("L");

    const kept = state.rate === null ? "" : `, 1 in ${state.rate} transitions kept`;
    const lack = envs[state.env].unscored ? `. No scores: ${envs[state.env].unscored}` : "";
    const title = `${state.env}, demonstrations: ${state.demos}${kept}, input: ${state.mode}${lack}`;
    root.querySelector(".cell").textContent = title;
    const names = curves.map((c) => c.method.label).join(", ") || "no method";
    const plot = svg("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img",
      "aria-label": `Learning curves of ${names}. ${title}. ` +
        "Left and right move along a curve, up and down between curves.",
    });
    for (const v of ticks(low, high)) {
      plot.append(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(v), y2: y(v) }),
        svg("text", { x: MARGIN.left - 8, y: y(v), dy: "0.32em", "text-anchor": "end" }, whole(v)));
    }
    for (const s of longest ? ticks(0, end) : []) {
      plot.append(svg("line", { class: "grid", x1: x(s), x2: x(s), y1: MARGIN.top, y2: height - MARGIN.bottom }),
        svg("text", { x: x(s), y: height - MARGIN.bottom + 17, "text-anchor": "middle" }, short(s)));
    }
    plot.append(
      svg("text", { class: "title", x: x(end / 2), y: height - 6, "text-anchor": "middle" },
        longest ? "env steps" : "no method here steps the env"),
      svg("text", { class: "title", transform: `translate(13 ${y((low + high) / 2)}) rotate(-90)`, "text-anchor": "middle" },
        inReturns() ? "return" : "normalised return"));
    references.forEach((v, i) => {
      plot.append(svg("line", { class: `reference ${["random", "expert"][i]}`, x1: MARGIN.left, x2: width - MARGIN.right, y1: y(v), y2: y(v) }));
    });
    for (const c of [...curves].reverse()) {
      const group = paint(svg("g", { class: "curve", "data-method": c.cell.method }), c.method);
      group.classList.toggle("ours", c.method.ours);
      if (banded(c)) {
        const [up, down] = [1, -1].map((sign) => c.mean.map((m, i) => m + sign * c.std[i]));
        group.append(svg("path", {
          class: "band", d: `M${path([...c.steps, ...c.steps.toReversed()], [...up, ...down.toReversed()])}Z`,
        }));
      }
      group.append(svg("path", { class: "line", d: `M${path(c.steps, c.mean)}`, "stroke-dasharray": dashes(c.method, 2) }));
      for (const [s, v] of c.ends) group.append(svg("path", { class: "cross", d: `M${x(s) - 4},${y(v) - 4}l8,8m-8,0l8,-8` }));
      plot.append(group);
    }
    references.forEach((v, i) => {
      plot.append(svg("text", { class: "halo", x: width - MARGIN.right - 4, y: y(v) - 4, "text-anchor": "end" },
        ["random", "expert"][i]));
    });
    if (!curves.length) {
      plot.append(svg("text", { class: "nothing", x: x(end / 2), y: y((low + high) / 2), "text-anchor": "middle" }, NONE));
    }
    const dot = svg("circle", { class: "dot", r: 4.5, visibility: "hidden" });
    const tip = html("div", { className: "tip", hidden: true });
    tip.setAttribute("role", "status");
    plot.append(dot);
    plot.classList.toggle("crowded", curves.length > data.bands); // hides most bands
    chart.replaceChildren(plot, tip);
    view = { curves, x, y, plot, dot, tip, width, at: null };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", () => focus(null));
    plot.addEventListener("blur", () => focus(null));
    plot.addEventListener("keydown", key);
    last(curves);
  };

  const last = (curves) => {
    const rows = [...curves].sort((a, b) => b.mean.at(-1) - a.mean.at(-1)).map((c) =>
      html("tr", {}, ...[
        c.method.label,
        c.level ? "–" : whole(c.steps.at(-1)),
        score(c.mean.at(-1)),
        c.std ? score(c.std.at(-1)) : "–",
        c.cell.seeds,
        c.ends.length,
      ].map((text) => html("td", { textContent: text }))));
    const none = html("tr", {}, html("td", { className: "nothing", colSpan: 6, textContent: NONE }));
    root.querySelector(".last tbody").replaceChildren(...(rows.length ? rows : [none]));
  };

  // ------------------------------------------------------------ reading values

  // Show the values of a point. at: [curve, point], or null for none.
  const focus = (at) => {
    const { curves, x, y, plot, dot, tip, width } = view;
    view.at = at;
    tip.hidden = !at;
    dot.setAttribute("visibility", at ? "visible" : "hidden");
    plot.classList.toggle("focused", Boolean(at));
    plot.querySelectorAll(".curve").forEach((g) => g.classList.toggle("on", Boolean(at) && g.dataset.method === curves[at[0]].cell.method));
    if (!at) return;
    const c = curves[at[0]];
    const [px, py] = [x(c.steps[at[1]]), y(c.mean[at[1]])];
    dot.setAttribute("cx", px);
    dot.setAttribute("cy", py);
    paint(dot, c.method);
    plot.insertBefore(plot.querySelector(".curve.on"), plot.querySelector(".halo")); // bring it to the front
    const rows = [
      ["step", c.level ? "none: final score" : whole(c.steps[at[1]])],
      ["mean", score(c.mean[at[1]])],
      ["std", c.std ? score(c.std[at[1]]) : "– (one seed)"],
      ["seeds", c.cell.seeds],
    ];
    if (c.ends.length) rows.push(["diverged", c.ends.length]);
    if (c.cell.rate === null) rows.push(["transitions kept", c.cell.kept === 1 ? "all" : `1 in ${c.cell.kept}`]);
    tip.replaceChildren(paint(html("strong", { textContent: c.method.label }), c.method),
      html("dl", {}, ...rows.flatMap(([name, text]) => [html("dt", { textContent: name }), html("dd", { textContent: text })])));
    const left = px + 14 + tip.offsetWidth > width ? px - 14 - tip.offsetWidth : px + 14;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, py - tip.offsetHeight / 2)}px`;
  };

  const nearest = (values, value) =>
    values.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(values[best] - value) ? i : best), 0);

  const point = (event) => {
    const { curves, x, y, plot } = view;
    const box = plot.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const near = curves.map((c) => nearest(c.steps.map(x), px));
    const gaps = curves.map((c, i) => Math.abs(y(c.mean[near[i]]) - py));
    const best = gaps.indexOf(Math.min(...gaps));
    focus(best < 0 ? null : [best, near[best]]);
  };

  const key = (event) => {
    const { curves, y, at } = view;
    if (event.key === "Escape") return focus(null);
    if (!curves.length || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (!at) return focus([0, curves[0].steps.length - 1]);
    const c = curves[at[0]];
    const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (along) return focus([at[0], Math.min(c.steps.length - 1, Math.max(0, at[1] + along))]);
    // Go to the next curve above or below at this step.
    const here = curves.map((other) => {
      const i = nearest(other.steps, c.steps[at[1]]);
      return [i, y(other.mean[i])];
    });
    const order = curves.map((_, i) => i).sort((a, b) => here[a][1] - here[b][1] || a - b);
    const next = order[order.indexOf(at[0]) + (event.key === "ArrowUp" ? -1 : 1)];
    if (next !== undefined) focus([next, here[next][0]]);
  };

  // ------------------------------------------------------------ controls

  const csv = () => {
    const lines = view.curves.flatMap((c) => c.steps.map((s, i) =>
      [state.env, state.mode, c.cell.kept, state.demos, c.cell.method, c.level ? "" : s, c.mean[i], c.std ? c.std[i] : "", c.cell.seeds].join()));
    const text = ["env,mode,rate,demos,method,step,mean,std,seeds", ...lines, ""].join("\n");
    const link = html("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `curves-${state.env}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const all = (shown) => {
    for (const box of list.querySelectorAll("input")) {
      box.checked = shown;
      shown ? off.delete(box.value) : off.add(box.value);
    }
    draw();
  };

  field("band").addEventListener("change", draw);
  field("returns").addEventListener("change", draw);
  field("all").addEventListener("click", () => all(true));
  field("none").addEventListener("click", () => all(false));
  field("csv").addEventListener("click", csv);
  draw();
  let drawn = chart.clientWidth;
  new ResizeObserver(() => {
    if (chart.clientWidth === drawn) return;
    drawn = chart.clientWidth;
    draw();
  }).observe(chart);
})();
