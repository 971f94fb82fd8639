"use strict";
// Draws every plot over its printed twin, which stays where a plot fails. One theme, one width at a time.
(() => {
  const { arrays, plots } = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const FREE_SCALE = "free scale";
  const MARGIN = { l: 60, r: 12, t: 8, b: 44 };
  const GAP = 26; // between panels, in pixels, besides their titles

  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const colours = () => isDark()
    ? { ink: "#e6e9ec", soft: "#a3abb3", grid: "#2b3137", shade: "#8b949c", paper: "#14171a" }
    : { ink: "#1b1f23", soft: "#5b636b", grid: "#e4e8eb", shade: "#6b737b", paper: "#ffffff" };
  const narrow = (element) => element.clientWidth < 560;

  // The text's colour, wherever a trace asks for it.
  const inked = (trace, ink) => Object.fromEntries(["line", "marker"].filter((part) => trace[part]).map((part) =>
    [part, trace[part].color === "ink" ? { ...trace[part], color: ink } : trace[part]]));

  function traces(plot, ink) {
    return plot.traces.map((trace) => {
      const { panel, ...rest } = trace;
      for (const name of ["x", "y", "z"]) if (name in rest) rest[name] = arrays[rest[name]];
      const axis = panel ? String(panel + 1) : "";
      // On a dark page a band needs more of its colour to be seen.
      if (rest.fillcolor && isDark()) rest.fillcolor = rest.fillcolor.replace(/[\d.]+\)$/, (alpha) => `${1.8 * parseFloat(alpha)})`);
      return { ...rest, xaxis: `x${axis}`, yaxis: `y${axis}`, ...inked(rest, ink) };
    });
  }

  // Colour bars stand beside their own panel.
  function placeBars(drawn, plot, cells) {
    for (const trace of drawn) {
      if (!trace.colorbar) continue;
      const cell = cells[trace.xaxis === "x" ? 0 : Number(trace.xaxis.slice(1)) - 1];
      trace.colorbar = { ...trace.colorbar, x: cell.x[1], xanchor: "left", y: (cell.y[0] + cell.y[1]) / 2, len: cell.y[1] - cell.y[0], outlinewidth: 0 };
    }
  }

  function grid(plot, element) {
    const columns = narrow(element) ? 1 : Math.min(plot.columns, plot.panels.length);
    const rows = Math.ceil(plot.panels.length / columns);
    const each = narrow(element) ? Math.max(Math.min(plot.height, 320), rows > 2 ? 150 : 200) : plot.height;
    const bar = plot.traces.some((trace) => trace.colorbar) ? 0.12 : 0;
    const titled = plot.panels.some((panel) => panel.title);
    const legend = plot.traces.some((trace) => trace.showlegend) ? (narrow(element) ? 70 : 34) : 0;
    const height = rows * each + legend + MARGIN.b;
    const inner = height - MARGIN.b - MARGIN.t - legend;
    const labelled = plot.panels.slice(0, -1).some((panel) => panel.x) && rows > 1;
    const gapY = (GAP * 0.5 + (labelled ? 40 : 0) + (titled ? 16 : 0)) / inner;
    const gapX = columns > 1 ? 0.11 : 0;
    const width = (1 - gapX * (columns - 1)) / columns;
    const tall = (1 - gapY * (rows - 1)) / rows;
    const cells = plot.panels.map((_, k) => {
      const row = Math.floor(k / columns), column = k % columns;
      const x = column * (width + gapX), y = 1 - row * (tall + gapY) - tall;
      return { x: [x, x + width - bar], y: [y, y + tall - (titled ? 18 / inner : 0)] };
    });
    return { cells, height, legend, each };
  }

  function layout(plot, element) {
    const c = colours();
    const { cells, height, legend } = grid(plot, element);
    const fixed = coarse.matches || narrow(element);
    const result = {
      height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: c.ink, size: 12, family: "system-ui, sans-serif" },
      margin: { ...MARGIN, t: MARGIN.t + legend }, dragmode: fixed ? false : "zoom", hovermode: "closest",
      legend: { orientation: "h", x: 0, xref: "container", y: 1, yref: "container", yanchor: "top", font: { size: 11 } },
      shapes: [], annotations: [],
    };
    plot.panels.forEach((panel, k) => {
      const name = k ? String(k + 1) : "";
      const common = { gridcolor: c.grid, zerolinecolor: c.grid, linecolor: c.soft, ticks: "outside", tickcolor: c.soft, automargin: true, fixedrange: fixed };
      const timed = plot.panels.length > 1 && plot.columns === 1;
      result[`xaxis${name}`] = { ...common, domain: cells[k].x, anchor: `y${name}`, title: { text: panel.x, standoff: 6 }, showticklabels: panel.x !== "", ...(panel.x_span && !element.free ? { range: panel.x_span } : { autorange: true }), ...(timed && k ? { matches: "x" } : {}) };
      result[`yaxis${name}`] = { ...common, domain: cells[k].y, anchor: `x${name}`, title: { text: panel.y, standoff: 4 }, type: panel.log ? "log" : "linear",
        ...(panel.log ? { exponentformat: "power", nticks: 6, tickfont: { size: 11 } } : {}),
        ...(panel.span && !element.free ? { range: panel.span } : { autorange: true }) };
      addMarks(result, panel, name, c, cells[k]);
    });
    return result;
  }

  function addMarks(result, panel, name, c, cell) {
    for (const [since, until] of panel.shades) {
      result.shapes.push({ type: "rect", layer: "below", xref: `x${name}`, yref: `y${name} domain`, x0: since, x1: until, y0: 0, y1: 1, line: { width: 0 }, fillcolor: c.shade, opacity: 0.13 });
    }
    for (const rule of panel.rules) {
      const upright = rule.axis === "x";
      const xref = upright ? `x${name}` : `x${name} domain`, yref = upright ? `y${name} domain` : `y${name}`;
      result.shapes.push({ type: "line", xref, yref, x0: upright ? rule.at : 0, x1: upright ? rule.at : 1, y0: upright ? 0 : rule.at, y1: upright ? 1 : rule.at, line: { color: c.soft, width: 1 } });
      const at = !upright && panel.log ? Math.log10(rule.at) : rule.at;
      if (rule.text) result.annotations.push({ text: rule.text, xref, yref, x: upright ? rule.at : 1, y: upright ? 1 : at, showarrow: false, xanchor: upright ? "left" : "right", yanchor: upright ? "top" : "bottom", font: { size: 11, color: c.soft } });
    }
    if (panel.title) {
      result.annotations.push({ text: panel.title, xref: "paper", yref: "paper", x: cell.x[0], y: cell.y[1], showarrow: false, xanchor: "left", yanchor: "bottom", font: { size: 12, color: c.soft } });
    }
  }

  async function draw(element) {
    const plot = plots[element.id];
    const holder = element.parentElement;
    holder.classList.add("drawn"); // a plot needs its width before it is drawn
    try {
      const shown = traces(plot, colours().ink);
      const pressed = pressedGroups(element);
      for (const trace of shown) if (trace.meta) trace.visible = pressed.has(trace.meta);
      element.free = pressed.has(FREE_SCALE);
      placeBars(shown, plot, grid(plot, element).cells);
      await Plotly.react(element, shown, layout(plot, element), { responsive: false, displaylogo: false, displayModeBar: coarse.matches || narrow(element) ? false : "hover", modeBarButtonsToRemove: ["select2d", "lasso2d"] });
      element.laidOut = element.clientWidth;
    } catch (problem) {
      holder.classList.remove("drawn");
      console.error(`The plot ${element.id} could not be drawn; its printed twin is shown.`, problem);
    }
  }

  function pressedGroups(element) {
    const buttons = element.closest("figure").querySelectorAll('.toggle[aria-pressed="true"]');
    return new Set([...buttons].map((button) => button.dataset.group));
  }

  const shownPlots = (within) => [...within.querySelectorAll(".plot:not([hidden]) > .live")];

  async function drawAll() {
    for (const element of shownPlots(document)) await draw(element);
    root.dataset.drawn = "true";
  }

  function toggle(button) {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(pressed));
    shownPlots(button.closest("figure")).forEach(draw);
  }

  function choose(menu) {
    const figure = menu.closest("figure");
    figure.querySelectorAll(".plot").forEach((plot, k) => { plot.hidden = k !== Number(menu.value); });
    shownPlots(figure).forEach(draw);
  }

  async function copy(button) {
    const pre = button.closest(".paste").querySelector("pre");
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch { // no clipboard on this page: select it, so that one key copies
      window.getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
  }

  function nameTheme() {
    const button = document.getElementById("theme");
    button.setAttribute("aria-pressed", String(isDark()));
  }

  function switchTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
    return drawAll();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "theme") switchTheme();
    else if (button.classList.contains("toggle")) toggle(button);
    else if (button.classList.contains("copy")) copy(button);
  });
  document.addEventListener("change", (event) => { if (event.target.matches(".menu")) choose(event.target); });
  prefersDark.addEventListener("change", () => { nameTheme(); drawAll(); });
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => shownPlots(document).filter((e) => e.clientWidth !== e.laidOut).forEach(draw), 150);
  });
  // Folded text belongs on paper.
  const folded = () => document.querySelectorAll("details:not([open])");
  window.addEventListener("beforeprint", () => folded().forEach((d) => { d.open = true; d.dataset.opened = ""; }));
  window.addEventListener("afterprint", () => document.querySelectorAll("details[data-opened]").forEach((d) => { d.open = false; delete d.dataset.opened; }));
  nameTheme();
  drawAll();
})();
