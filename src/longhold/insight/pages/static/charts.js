// The three plots over the calls of a session: context, cache, money. They share their x axis and their zoom.
const PLOT_HEIGHT = 250;
const COLOURS = ["system prompt and tools", "user messages", "summaries", "answers", "thinking", "tool results", "tool calls", "reminders", "restored context", "cleared results", "spilled results", "images and documents"];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function charts(session, openCall) {
  const main = session.calls.filter((call) => call.source === "main");
  const places = new Map(main.map((call, i) => [call.n, i]));
  const context = session.context.filter((point) => places.has(point.n));
  let byTime = false, plots = [], range = null, syncing = false;

  // The position of an entry on the axis: the first call after it.
  const placeOf = (n) => {
    let low = 0, high = main.length;
    while (low < high) { const mid = (low + high) >> 1; if (main[mid].n < n) low = mid + 1; else high = mid; }
    return low;
  };
  const timed = main.length > 1 && main.every((call, i) => call.at && (i === 0 || call.at >= main[i - 1].at));
  const xs = () => main.map((call, i) => (byTime ? call.at : i + 1));
  const xOf = (n) => { const all = xs(), i = Math.min(placeOf(n), main.length - 1); return byTime ? all[i] : placeOf(n) + 0.5; };

  const element = el("div");
  const reset = el("button", { type: "button", class: "reset", onclick: () => zoom(null), hidden: true }, "Reset zoom");
  const closer = el("button", { type: "button", "aria-label": "Zoom in", onclick: () => scale(0.5) }, "+");
  const wider = el("button", { type: "button", "aria-label": "Zoom out", onclick: () => scale(2) }, "−");
  const axis = el("button", { type: "button", "aria-pressed": "false", onclick: () => { byTime = !byTime; axis.setAttribute("aria-pressed", byTime); range = null; draw(); } }, "By time");
  axis.hidden = !timed;

  function zoom(to) {
    range = to;
    reset.hidden = !to;
    syncing = true;
    const all = xs(), pad = byTime ? 0 : 0.5;
    for (const plot of plots) plot.setScale("x", to || { min: all[0] - pad, max: all[all.length - 1] + pad });
    syncing = false;
  }
  function scale(factor) {
    if (!plots.length) return;
    const all = xs(), { min, max } = plots[0].scales.x, middle = (min + max) / 2;
    const half = Math.max(((max - min) / 2) * factor, byTime ? 30 : 2);
    const low = Math.max(all[0] - 0.5, middle - half), high = Math.min(all[all.length - 1] + 0.5, middle + half);
    zoom(high - low >= all[all.length - 1] - all[0] ? null : { min: low, max: high });
  }

  function options(width, given) {
    const grid = { stroke: css("--line"), width: 1 }, ink = css("--quiet");
    const pad = byTime ? 0 : 0.5, all = xs();
    return {
      width, height: PLOT_HEIGHT, legend: { show: false }, padding: [12, 8, 0, 0],
      cursor: { sync: { key: session.id }, drag: { x: true, y: false, dist: 6 }, points: { show: false }, y: false },
      scales: { x: { time: byTime, range: (u, min, max) => (min <= all[0] && max >= all[all.length - 1] ? [all[0] - pad, all[all.length - 1] + pad] : [min, max]) }, y: { range: given.range || ((u, min, max) => [0, max * 1.08 || 1]) } },
      axes: [
        { stroke: ink, size: byTime ? 46 : 34, grid: { show: false }, ticks: grid, font: "12px system-ui", values: byTime ? undefined : (u, at) => at.map((x) => (Number.isInteger(x) ? count(x) : "")) },
        { stroke: ink, grid, ticks: { show: false }, font: "12px system-ui", size: 56, values: (u, at) => at.map(given.value) },
      ],
      series: [{}, ...given.series],
      hooks: {
        draw: [given.draw || (() => {})],
        setCursor: [(u) => hover(u, given)],
        setScale: [(u, key) => {
          if (key !== "x" || syncing) return;
          const { min, max } = u.scales.x, whole = min <= all[0] && max >= all[all.length - 1];
          zoom(whole ? null : { min, max });
        }],
        ready: [(u) => {
          let downAt = 0;
          u.over.addEventListener("mousedown", (event) => { downAt = event.clientX; });
          u.over.addEventListener("click", (event) => {
            if (Math.abs(event.clientX - downAt) < 4 && u.cursor.idx != null) openCall(main[u.cursor.idx]);
          });
          u.over.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
        }],
      },
    };
  }

  function hover(u, given) {
    const i = u.cursor.idx;
    for (const item of given.items) item.value(i == null ? main.length - 1 : i);
    const tip = byId("tip");
    if (i == null || !u.over.matches(":hover")) { if (u.over.matches(":hover")) tip.hidden = true; return; }
    const call = main[i];
    tip.replaceChildren(
      el("div", {}, el("b", {}, `Call ${i + 1}`), el("span", { class: "quiet" }, when(call.at))),
      ...given.items.filter((item) => item.tip).map((item) => el("div", {}, el("span", {}, item.name), el("span", {}, item.tip(i)))),
      ...(call.cause ? [el("span", { class: "why" }, `${call.is_expected ? "Expected break" : "Cache break"}: ${call.detail || call.cause} (${tokens(call.lost_tokens)} not read, ${money(call.lost_usd)})`)] : []),
    );
    tip.hidden = false;
    const box = u.over.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const x = box.left + u.cursor.left;
    tip.style.left = `${Math.max(6, x + 16 + size.width > innerWidth ? x - size.width - 16 : x + 16)}px`;
    tip.style.top = `${Math.max(6, Math.min(box.top + 12, innerHeight - size.height - 6))}px`;
  }

  // A legend item: a colour, a name, and the value at the cursor.
  function item(name, colour, format, { dot = false, tip = format, toggle = null } = {}) {
    const value = el("b"), swatch = el("span", { class: dot ? "swatch dot" : "swatch" });
    swatch.style.background = colour;
    const parts = [colour ? swatch : null, el("span", {}, name), value];
    const inner = toggle ? [el("button", { type: "button", onclick: () => toggle(inner[0]) }, ...parts)] : parts;
    return { name, tip, value: (i) => { value.textContent = format && i >= 0 ? format(i) : ""; }, element: el("li", {}, ...inner) };
  }

  // Draw a line with a label and return its position. Omit the label if it would cover the previous one.
  function vertical(u, x, colour, label, top, last = -Infinity) {
    const place = Math.round(u.valToPos(x, "x", true));
    if (place < u.bbox.left || place > u.bbox.left + u.bbox.width) return last;
    const ctx = u.ctx, dpr = devicePixelRatio || 1;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = 1.5 * dpr;
    ctx.setLineDash([4 * dpr, 3 * dpr]);
    ctx.beginPath(); ctx.moveTo(place, u.bbox.top); ctx.lineTo(place, u.bbox.top + u.bbox.height); ctx.stroke();
    const room = place - last > 75 * dpr;
    if (room) {
      ctx.font = `${11 * dpr}px system-ui`;
      ctx.textAlign = place > u.bbox.left + u.bbox.width * 0.85 ? "right" : "left";
      ctx.fillText(label, place + (ctx.textAlign === "left" ? 5 : -5) * dpr, u.bbox.top + top * dpr);
    }
    ctx.restore();
    return room ? place : last;
  }

  function horizontal(u, y, colour, label) {
    if (y > u.scales.y.max) return;
    const ctx = u.ctx, dpr = devicePixelRatio || 1, place = Math.round(u.valToPos(y, "y", true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = dpr; ctx.setLineDash([2 * dpr, 4 * dpr]);
    ctx.beginPath(); ctx.moveTo(u.bbox.left, place); ctx.lineTo(u.bbox.left + u.bbox.width, place); ctx.stroke();
    ctx.font = `${11 * dpr}px system-ui`; ctx.textAlign = "left"; ctx.textBaseline = "bottom";
    ctx.fillText(label, u.bbox.left + 6 * dpr, place - 2 * dpr);
    ctx.restore();
  }

  function dots(u, marks) {
    const ctx = u.ctx, dpr = devicePixelRatio || 1;
    ctx.save();
    ctx.setLineDash([]);
    ctx.strokeStyle = css("--card"); ctx.lineWidth = 1.5 * dpr;
    for (const { x, y, colour } of marks) {
      const left = u.valToPos(x, "x", true), top = u.valToPos(y, "y", true);
      if (left < u.bbox.left - 2 || left > u.bbox.left + u.bbox.width + 2) continue;
      ctx.fillStyle = colour;
      ctx.beginPath(); ctx.arc(left, top, 4.5 * dpr, 0, 7); ctx.fill(); ctx.stroke();
    }
    ctx.restore();
  }

  function contextPlot(width) {
    const names = session.categories.filter((name) => context.some((point) => point[name] > 0));
    const colours = names.map((name) => css(`--c${COLOURS.includes(name) ? COLOURS.indexOf(name) : 11}`));
    const sums = names.map(() => []);
    context.forEach((point) => { let sum = 0; names.forEach((name, k) => { sum += point[name]; sums[k].push(sum); }); });
    const aligned = (values) => { const out = new Array(main.length).fill(null); context.forEach((point, i) => { out[places.get(point.n)] = values[i]; }); return out; };
    const at = new Map(context.map((point) => [places.get(point.n), point]));
    const limit = session.window.limit_tokens, peak = Math.max(1, ...context.map((point) => point.tokens));
    const top = peak > 0.35 * limit ? Math.max(limit * 1.06, peak * 1.05) : peak * 1.15;
    const order = names.map((_, k) => names.length - 1 - k);
    const items = names.map((name, k) => item(name, colours[k], (i) => (at.has(i) ? tokens(at.get(i)[name]) : "")));
    items.unshift(item("prompt", "", (i) => (at.has(i) ? tokens(at.get(i).tokens) : "")));
    return {
      title: "Context over time", hint: "the prompt of each call by category; the total is the count of the provider, and the parts are estimates", items,
      data: [xs(), ...order.map((k) => aligned(sums[k]))], value: tokens, range: () => [0, top],
      series: order.map((k) => ({ fill: colours[k], stroke: colours[k], width: 1, spanGaps: true, points: { show: false } })),
      draw: (u) => {
        horizontal(u, limit, css("--bad"), `window ${tokens(limit)}`);
        if (session.window.auto) horizontal(u, session.window.auto_tokens, css("--warn"), `${session.format === "longhold" ? "space is freed" : `${session.format} compacts`} ${tokens(session.window.auto_tokens)}`);
        let compacted, other;
        for (const change of session.changes) {
          if (change.kind === "compacted") compacted = vertical(u, xOf(change.n), css("--ink"), "compacted", 27, compacted);
          else if (["cleared", "snipped", "collapsed"].includes(change.kind)) other = vertical(u, xOf(change.n), css("--quiet"), change.kind, 58, other);
        }
      },
    };
  }

  function cachePlot() {
    const parts = [["read", "read_tokens", "--read"], ["written", "written_tokens", "--write"], ["neither", "uncached_tokens", "--none"]];
    const sums = parts.map(() => []);
    for (const call of main) { let sum = 0; parts.forEach(([, key], k) => { sum += call[key]; sums[k].push(sum); }); }
    const bars = uPlot.paths.bars({ size: [0.8, 40], align: 0 });
    const items = parts.map(([name, key, colour]) => item(name, css(colour), (i) => tokens(main[i][key])));
    items.push(item("break", css("--bad"), null, { dot: true }), item("expected", css("--warn"), null, { dot: true }));
    const broken = main.map((call, i) => [call, i]).filter(([call]) => call.cause);
    return {
      title: "Prompt cache", hint: "tokens read from it, written to it, and neither, per call", items,
      data: [xs(), ...[2, 1, 0].map((k) => sums[k])], value: tokens,
      series: [2, 1, 0].map((k) => ({ fill: css(parts[k][2]), stroke: css(parts[k][2]), width: 0, paths: bars, points: { show: false } })),
      draw: (u) => dots(u, broken.map(([call, i]) => ({ x: xs()[i], y: sums[2][i] * 1.03, colour: css(call.is_expected ? "--warn" : "--bad") }))),
    };
  }

  function moneyPlot() {
    const paid = [], ideal = [], bare = [];
    let a = 0, b = 0, c = 0, i = 0;
    for (const call of session.calls) {
      a += call.usd; b += call.ideal_usd; c += call.bare_usd;
      if (call.source === "main") i++;
      if (i) { paid[i - 1] = a; ideal[i - 1] = b; bare[i - 1] = c; }
    }
    let plot = null;
    const toggle = (button) => { const show = !plot.series[3].show; plot.setSeries(3, { show }); button.classList.toggle("off", !show); };
    const items = [
      item("paid", css("--money"), (k) => money(paid[k])),
      item("with an ideal cache", css("--ideal"), (k) => money(ideal[k])),
      item("without a cache", css("--bare"), (k) => money(bare[k]), { toggle }),
    ];
    items[2].element.firstChild.classList.add("off");
    const soft = css("--money") + "22";
    return {
      title: "Money over time", hint: "all calls so far, forks included", items, made: (u) => { plot = u; },
      data: [xs(), paid, ideal, bare], value: money,
      series: [
        { stroke: css("--money"), width: 2, fill: soft, points: { show: false } },
        { stroke: css("--ideal"), width: 1.5, dash: [5, 4], points: { show: false } },
        { stroke: css("--bare"), width: 1.5, points: { show: false }, show: false },
      ],
      draw: (u) => dots(u, main.map((call, k) => [call, k]).filter(([call]) => call.cause && call.lost_usd > 0).map(([call, k]) => ({ x: xs()[k], y: paid[k], colour: css(call.is_expected ? "--warn" : "--bad") }))),
    };
  }

  function draw() {
    for (const plot of plots) plot.destroy();
    plots = [];
    element.replaceChildren();
    if (!main.length) { element.append(el("section", {}, el("p", { class: "quiet" }, "No call has recorded usage, so there is nothing to plot."))); return; }
    [contextPlot(), cachePlot(), moneyPlot()].forEach((given, k) => {
      const place = el("div", { class: "plot" });
      const tools = k ? null : el("div", { class: "tools" }, axis, wider, closer, reset);
      element.append(el("section", { id: ["context", "cache", "money"][k] },
        el("div", { class: "head" }, el("h2", {}, given.title), el("span", { class: "hint wide" }, given.hint), tools), place,
        el("ul", { class: "legend" }, ...given.items.map((one) => one.element))));
      const plot = new uPlot(options(Math.max(place.clientWidth, 240), given), given.data, place);
      if (given.made) given.made(plot);
      for (const one of given.items) one.value(main.length - 1);
      plots.push(plot);
    });
    if (range) zoom(range);
  }

  const resized = new ResizeObserver(() => {
    for (const plot of plots) {
      const width = plot.root.parentElement.clientWidth;
      if (width && width !== plot.width) plot.setSize({ width, height: PLOT_HEIGHT });
    }
  });
  resized.observe(element);
  return { element, draw, zoom, range: () => range, end() { resized.disconnect(); for (const plot of plots) plot.destroy(); } };
}
