// Shows the list of sessions or one session, from this file or from its server.
const page = JSON.parse(byId("data").textContent);

function places(list) {
  byId("places").replaceChildren(...list.map(([id, name]) => el("a", { href: `#${id}`, onclick: (event) => { event.preventDefault(); byId(id).scrollIntoView(); } }, name)));
}

// Requests to the server, if there is one: whole texts, other sessions, new rows.
const live = {
  on: page.mode === "live",
  async get(path) {
    const answer = await fetch(path, { credentials: "omit", cache: "no-store" });
    if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 300)}`);
    return answer.json();
  },
  async text(id, n) { return (await this.get(`api/text?session=${encodeURIComponent(id)}&n=${n}`)).text; },
  async session(id) { return this.get(`api/session?session=${encodeURIComponent(id)}`); },
  async undo(id, n) {
    const answer = await fetch(`api/undo?session=${encodeURIComponent(id)}&n=${n}`, { method: "POST", credentials: "omit" });
    return answer.ok ? (await answer.json()).said : `It was not undone: ${(await answer.text()).slice(0, 300)}`;
  },
  async search(id, words) {
    const found = await this.get(`api/search?session=${encodeURIComponent(id)}&words=${encodeURIComponent(words)}`);
    if (query.text === words) { query.also = new Set(found.numbers); query.changed(); }
  },
  // A lost connection may have missed rows, so everything is read again.
  follow(listener, lost) {
    const source = new EventSource("api/events");
    let opened = 0;
    source.onopen = () => { if (opened++) lost(); };
    for (const kind of ["session", "list"]) source.addEventListener(kind, (event) => listener(kind, JSON.parse(event.data)));
    return source;
  },
};

function listView(rows) {
  byId("search").placeholder = "Search titles, projects and models";
  query.listeners.clear();
  const known = (key, format) => (row) => (row[key] == null ? "" : format(row[key]));
  const made = table({
    rows, sorted: { key: "last_at", falls: true }, opens: (row) => { location.hash = `#/${encodeURIComponent(row.id)}`; },
    text: (row) => `${row.title} ${row.name} ${row.format} ${row.model} ${row.directory}`,
    columns: [
      { key: "title", label: "session", show: (row) => [lines(row.title || row.name), el("span", { class: "quiet wide" }, row.title ? row.name : "")] },
      { key: "directory", label: "project", nowrap: true, wide: true, show: (row) => el("span", { title: row.directory }, row.directory.split("/").pop().slice(-24)) },
      { key: "format", label: "agent", nowrap: true, wide: true }, { key: "model", label: "model", nowrap: true, wide: true, show: (row) => row.model.replace(/^.*\/|^claude-/g, "").replace(/-\d{8}$/, "").slice(0, 24) },
      { key: "last_at", label: "last", nowrap: true, wide: true, num: true, show: (row) => when(row.last_at) },
      { key: "calls", label: "calls", num: true, wide: true, show: known("calls", count) }, { key: "hit_share", label: "cached", num: true, wide: true, show: known("hit_share", percent) },
      { key: "compactions", label: "compactions", num: true, wide: true, show: known("compactions", count) },
      { key: "lost_usd", label: "avoidable", num: true, wide: true, show: known("lost_usd", money) }, { key: "usd", label: "spent", num: true, show: known("usd", money) },
      ...(page.can_undo ? [{ key: "saved_usd", label: "saved", num: true, show: known("saved_usd", money) }] : []),
    ],
  });
  byId("main").replaceChildren(
    el("h1", {}, page.title || "Sessions"),
    section("sessions", "Sessions", "click one to open it", made));
  places([]);
  return { redraw() {}, end() {}, list: (fresh) => made.update(fresh) };
}

const app = { view: null, id: null, data: null, rows: rowsOf(page.sessions) };

async function show() {
  const id = location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : "";
  const single = !live.on && app.rows.length === 1 ? app.rows[0].id : "";
  const wanted = id || single;
  if (app.view && app.id === wanted) return;
  if (app.view) app.view.end();
  byId("dialog").close();
  app.id = wanted;
  app.data = null;
  if (!wanted) { app.view = page.report ? reportView(page.report) : listView(app.rows); return; }
  try {
    if (live.on && !page.pages[wanted]) byId("main").replaceChildren(el("p", { class: "quiet" }, "Reading the session…"));
    const data = page.pages[wanted] || (await live.session(wanted));
    if (app.id !== wanted) return;
    app.data = data;
    app.view = sessionView(data);
    scrollTo(0, 0);
  } catch (error) {
    app.view = null;
    byId("main").replaceChildren(el("p", {}, `This session cannot be shown: ${error.message}`), el("p", {}, el("a", { href: "#/" }, "All sessions")));
  }
}

// Append new rows to those that remain: { table: { from, rows } }.
function merge(data, fresh) {
  const tables = { ...data.tables };
  for (const [name, { from, rows }] of Object.entries(fresh.tables)) {
    tables[name] = Object.fromEntries(Object.entries(rows).map(([field, values]) => [field, [...(data.tables[name][field] || new Array(from).fill(0)).slice(0, from), ...values]]));
  }
  return { ...data, ...fresh.head, tables };
}

byId("search").addEventListener("input", (() => {
  let timer = 0;
  return (event) => { clearTimeout(timer); timer = setTimeout(() => {
    query.set(event.target.value);
    if (live.on && app.data && query.words.length) live.search(app.id, query.text).catch(() => {});
  }, 120); };
})());
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  if (app.view) app.view.redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.view && app.view.redraw());
byId("dialog").addEventListener("click", (event) => { if (event.target === byId("dialog")) byId("dialog").close(); });
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); byId("search").focus(); }
});

if (live.on) {
  live.follow((kind, event) => {
    if (kind === "list") {
      app.rows = rowsOf(event.sessions);
      if (app.view && app.view.list) app.view.list(app.rows);
    } else if (app.data && event.session === app.id) {
      app.data = merge(app.data, event);
      app.view.update(app.data);
    }
  }, () => { app.id = null; show(); });
}
show().then(() => { document.documentElement.dataset.drawn = Math.round(performance.now()); });
