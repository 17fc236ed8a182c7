// The page of a report: total cost, cost by day, and cost by purpose.
const DIMENSIONS = [["project", "Projects"], ["model", "Models"], ["session", "Sessions"], ["agent", "Agents"], ["source", "Asked by"], ["month", "Months"], ["day", "Days"]];
const spent = (row) => row.recorded_usd + row.unrecorded_usd;
const prompt = (row) => row.uncached + row.read + row.write_5m + row.write_1h;

function reportView(report) {
  query.listeners.clear();
  const made = DIMENSIONS.map(([key, title]) => [key, title, rowsOf(report.tables[key] || {})]).filter(([, , rows]) => rows.length);
  const days = rowsOf(report.tables.day || {}).filter((row) => /^\d{4}-\d\d-\d\d$/.test(row.name));
  const total = report.total, cached = prompt(total) ? total.read / prompt(total) : 0;
  const fact = (value, name, note) => el("div", { class: "fact" }, el("span", {}, name), el("b", {}, value), el("span", { class: "note" }, note));
  const [verdict, ...rest] = report.lines;
  const lost = report.losses.filter((loss) => loss.usd > 0);
  const place = el("div", { class: "plot" });
  const legend = el("ul", { class: "legend" });
  let plot = null;

  function draw() {
    if (plot) plot.destroy();
    if (days.length < 2) return;
    const at = days.map((row) => Date.UTC(...row.name.split("-").map((part, i) => part - (i === 1 ? 1 : 0))) / 1000);
    const all = days.map(spent), avoidable = days.map((row) => row.avoidable_usd);
    const bars = uPlot.paths.bars({ size: [0.7, 48], align: 0 }), ink = css("--quiet"), day = 86400;
    const names = [["spent", css("--money"), all], ["avoidable", css("--none"), avoidable]];
    const values = names.map(() => el("b"));
    const dots = names.map(([, colour]) => { const dot = el("span", { class: "swatch" }); dot.style.background = colour; return dot; });
    const label = el("li");
    legend.replaceChildren(label, ...names.map(([name], k) => el("li", {}, dots[k], name, values[k])));
    const tell = (i) => { label.textContent = i == null ? "all days" : days[i].name; names.forEach(([, , of], k) => { values[k].textContent = money(i == null ? of.reduce((a, b) => a + b, 0) : of[i]); }); };
    plot = new uPlot({
      width: Math.max(place.clientWidth, 240), height: PLOT_HEIGHT, legend: { show: false }, padding: [12, 8, 0, 0], tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
      cursor: { drag: { x: true, y: false, dist: 6 }, points: { show: false }, y: false },
      scales: { x: { time: true, range: (u, min, max) => [Math.max(min, at[0]) - day / 2, Math.min(max, at[at.length - 1]) + day / 2] }, y: { range: (u, min, max) => [0, max * 1.08 || 1] } },
      axes: [{ stroke: ink, size: 46, grid: { show: false }, ticks: { stroke: css("--line"), width: 1 }, font: "12px system-ui" }, { stroke: ink, grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui", size: 60, values: (u, ticks) => ticks.map(money) }],
      series: [{}, ...names.map(([, colour]) => ({ fill: colour, stroke: colour, width: 0, paths: bars, points: { show: false } }))],
      hooks: { setCursor: [(u) => tell(u.cursor.idx)] },
    }, [at, all, avoidable], place);
    tell(null);
  }

  const tables = made.map(([key, title, rows]) => {
    const inOrder = key === "day" || key === "month";
    const built = table({
      rows, at_once: 15, text: (row) => `${row.name} ${row.title}`, sorted: inOrder ? { key: "name", falls: true } : null,
      columns: [
        { key: "name", label: title.toLowerCase(), show: (row) => [lines(row.title || row.name), row.title ? el("span", { class: "quiet" }, row.name) : ""] },
        { key: "calls", label: "calls", num: true, wide: true, show: (row) => count(row.calls) },
        { key: "tokens", label: "tokens", num: true, wide: true, value: (row) => prompt(row) + row.output, show: (row) => tokens(prompt(row) + row.output) },
        { key: "cached", label: "cached", num: true, wide: true, value: (row) => row.read / (prompt(row) || 1), show: (row) => percent(row.read / (prompt(row) || 1)) },
        { key: "avoidable_usd", label: "avoidable", num: true, show: (row) => (row.avoidable_usd ? money(row.avoidable_usd) : "") },
        { key: "usd", label: "spent", num: true, value: spent, show: (row) => money(spent(row)) },
      ],
    });
    return [key, title, section(key, title, "", built)];
  });
  const losses = lost.length ? section("losses", "Lost cache reads", "and what that cost", table({
    rows: lost, text: (row) => `${row.cause} ${row.words}`,
    columns: [{ key: "words", label: "because" }, { key: "is_avoidable", label: "", nowrap: true, show: (row) => el("span", { class: `tag ${row.is_avoidable ? "bad" : ""}` }, row.is_avoidable ? "avoidable" : "not avoidable") }, { key: "calls", label: "calls", num: true, show: (row) => count(row.calls) }, { key: "tokens", label: "tokens", num: true, wide: true, show: (row) => tokens(row.tokens) }, { key: "usd", label: "cost", num: true, show: (row) => money(row.usd) }],
  })) : null;

  byId("main").replaceChildren(...[
    el("h1", {}, verdict || "Nothing was spent"),
    ...rest.filter((line) => line.trim()).map((line) => el("p", { class: "lead" }, el(line.startsWith("\n") ? "b" : "span", {}, line.trim()))),
    el("div", { class: "facts" },
      fact(money(spent(total)), "spent", total.unrecorded_usd ? `${money(total.unrecorded_usd)} of it estimated` : "all of it recorded"),
      fact(money(total.avoidable_usd), "avoidable", spent(total) ? `${percent(total.avoidable_usd / spent(total))} of all` : ""),
      fact(percent(cached), "from the cache", `${tokens(total.read)} tokens`),
      fact(count(total.calls), total.calls === 1 ? "call" : "calls", total.unpriced_calls ? `${plural(total.unpriced_calls, "call")} without a price` : `${tokens(total.output)} tokens of output`)),
    days.length > 1 ? el("section", { id: "money" }, el("div", { class: "head" }, el("h2", {}, "Money by day"), el("span", { class: "hint wide" }, "drag to zoom, double click to go back")), place, legend) : null,
    losses, ...tables.map(([, , one]) => one),
  ].filter(Boolean));
  draw();
  const resized = new ResizeObserver(() => plot && place.clientWidth && plot.setSize({ width: place.clientWidth, height: PLOT_HEIGHT }));
  resized.observe(place);
  places([...(days.length > 1 ? [["money", "Money"]] : []), ...(losses ? [["losses", "Losses"]] : []), ...tables.map(([key, title]) => [key, title])]);
  return { redraw: draw, end() { resized.disconnect(); if (plot) plot.destroy(); } };
}
