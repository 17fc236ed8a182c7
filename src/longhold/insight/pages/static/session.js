// The page of one session.
const KINDS = { user: "user", aside: "reminder", answer: "answer", result: "result", summary: "summary", line: "collapsed", restored: "restored" };
const STATES = { shown: "in view", compacted: "summarised", cleared: "cleared", spilled: "on disk", snipped: "dropped", collapsed: "collapsed" };
const CHANGES = { compacted: "compaction", cleared: "cleared", spilled: "to disk", snipped: "dropped", collapsed: "collapsed", restored: "restored", cachebroke: "cache break", failed: "failed", withheld: "budget", undone: "undo", redone: "redo", switched: "model", spawned: "agent", ended: "agent", forked: "side call", noted: "notes", pinned: "pinned", swept: "removed" };
const SECTIONS = [["context", "Context"], ["cache", "Cache"], ["money", "Money"], ["compactions", "Compactions"], ["changes", "Changes"], ["calls", "Calls"], ["words", "Your words"], ["messages", "Messages"]];

const UNDOABLE = ["compacted", "cleared", "spilled", "snipped", "collapsed"];

function undoButton(session, change) {
  const button = el("button", { type: "button", onclick: async (event) => {
    event.stopPropagation();
    button.disabled = true;
    button.replaceWith(el("span", { class: "quiet" }, await live.undo(session.id, change.n)));
  } }, "undo");
  return button;
}

function stateTag(state) {
  return el("span", { class: `tag ${state === "shown" ? "good" : ""}` }, STATES[state] || state);
}

function withRows(data) {
  const session = { ...data };
  for (const [name, columns] of Object.entries(data.tables)) session[name] = rowsOf(columns);
  session.byNumber = new Map(session.messages.map((row) => [row.n, row]));
  return session;
}

// Open a dialog with a title, a list to step through, and a body.
function openDialog(title, body, step) {
  const dialog = byId("dialog");
  const turn = (by) => el("button", { type: "button", "aria-label": by < 0 ? "Previous" : "Next", onclick: () => step(by) }, by < 0 ? "←" : "→");
  dialog.onkeydown = (event) => {
    if (step && event.key === "ArrowLeft") step(-1);
    if (step && event.key === "ArrowRight") step(1);
  };
  dialog.replaceChildren(
    el("div", { class: "bar" }, el("h2", {}, title), ...(step ? [turn(-1), turn(1)] : []), el("button", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
    el("div", { class: "body" }, ...body),
  );
  if (!dialog.open) dialog.showModal();
}

function pairs(entries) {
  return el("dl", { class: "pairs" }, ...entries.filter(([, value]) => value !== "" && value != null).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function openMessage(session, row, list) {
  const rows = list ? list() : session.messages;
  const stepped = (by) => { const next = rows[rows.indexOf(row) + by]; if (next) openMessage(session, next, list); };
  const text = el("pre", {}, ...marked(row.text));
  const notes = [];
  const left = session.changes.find((change) => change.n === row.by);
  if (row.state !== "shown") notes.push(el("p", { class: "note" }, `The model no longer sees this: ${left ? left.text : STATES[row.state] || row.state} (entry ${row.by}).`));
  if (row.chars > row.text.length) {
    const note = el("p", { class: "note" }, `The beginning: ${count(row.text.length)} of ${count(row.chars)} characters. `);
    if (live.on) note.append(el("button", { type: "button", onclick: async () => { text.replaceChildren(...marked(await live.text(session.id, row.n))); note.remove(); } }, "Show all"));
    else note.append(`All of it: longhold history ${session.name} --id '#${row.n}'`);
    notes.push(note);
  }
  const about = [row.tool, row.about].filter(Boolean).join(" · ");
  openDialog(`#${row.n} ${KINDS[row.kind] || row.kind}${about ? ` · ${about}` : ""}`, [el("p", { class: "note" }, `${when(row.at)} `, stateTag(row.state)), ...notes, text], stepped);
}

function openCall(session, call) {
  const message = session.byNumber.get(call.n);
  openDialog(`Call of entry #${call.n}`, [
    pairs([
      ["time", when(call.at)], ["model", call.model], ["asked by", call.source === "main" ? "the conversation" : call.source],
      ["read from the cache", count(call.read_tokens)], ["written to it", count(call.written_tokens)], ["neither", count(call.uncached_tokens)],
      ["output", count(call.output_tokens)], ["cost", call.is_priced ? money(call.usd) : "unknown: the model has no published price"],
      ["since the last call", call.seconds_since == null ? "" : span(call.seconds_since)],
      ["cache", call.cause ? `${call.is_expected ? "expected break" : "broke"}: ${call.cause}, ${count(call.lost_tokens)} tokens not read, ${money(call.lost_usd)}` : "held"], ["why", call.detail],
    ]),
    message ? el("button", { type: "button", onclick: () => openMessage(session, message) }, "Open the answer") : null,
  ].filter(Boolean));
}

function facts(session) {
  const { totals, window: limits } = session;
  const peak = Math.max(0, ...session.context.map((point) => point.tokens));
  const last = session.context.length ? session.context[session.context.length - 1].tokens : 0;
  const fact = (value, name, note) => el("div", { class: "fact" }, el("span", {}, name), el("b", {}, value), el("span", { class: "note" }, note));
  const estimated = session.estimated_usd > 0.005 ? `${money(session.estimated_usd)} of it estimated` : `without a cache ${money(totals.bare_usd)}`;
  const unpriced = totals.unpriced_calls ? `${plural(totals.unpriced_calls, "call")} without a price` : "";
  return el("div", { class: "facts" },
    fact(money(totals.usd + session.estimated_usd), "spent", unpriced || estimated),
    fact(money(session.avoidable_usd), "avoidable", "by keeping the cache warm"),
    fact(percent(session.hit_share), "from the cache", `${plural(totals.cold_calls, "cold call")}`),
    fact(count(totals.calls), totals.calls === 1 ? "call" : "calls", `${plural(session.turns.length, "turn")}, ${tokens(totals.output_tokens)} tokens of output`),
    fact(tokens(last), "context at the end", `peak ${tokens(peak)} of ${tokens(limits.limit_tokens)}`),
    fact(String(session.compactions.length), session.compactions.length === 1 ? "compaction" : "compactions", session.compactions.length ? `${count(session.compactions.reduce((sum, one) => sum + one.replaced, 0))} messages replaced` : "nothing was summarised"));
}

function section(id, title, hint, made, tools = null) {
  return el("section", { id }, el("div", { class: "head" }, el("h2", {}, title), made && made.counted, hint ? el("span", { class: "hint wide" }, hint) : null, tools), made ? made.element : null);
}

function compactionCard(session, one) {
  const inside = session.messages.filter((row) => row.n >= one.first && row.n <= one.last && !(one.kept && row.n >= one.kept[0] && row.n <= one.kept[1]));
  const words = new Map(one.words);
  const kept = one.words.filter(([, is]) => is).length;
  const list = el("ul", { class: "replaced" });
  const fill = (limit) => {
    list.replaceChildren(...inside.slice(0, limit).map((row) => el("li", {}, el("button", { type: "button", onclick: () => openMessage(session, row, () => inside) },
      el("span", { class: "quiet" }, `#${row.n}`), el("span", { class: "quiet" }, row.tool || KINDS[row.kind] || row.kind), el("span", { class: "text" }, gist(row, 140) || " "),
      words.has(row.n) ? el("span", { class: `tag ${words.get(row.n) ? "good" : "bad"}` }, words.get(row.n) ? "still there" : "not verbatim") : null))),
      ...(inside.length > limit ? [el("li", {}, el("button", { type: "button", onclick: () => fill(limit + 400) }, `Show more (${count(inside.length - limit)} left)`))] : []));
  };
  fill(80);
  const cut = one.chars > one.summary.length ? `\n… ${count(one.chars - one.summary.length)} more characters` : "";
  const lost = one.lost.filter(([name]) => name);
  const kinds = [...new Set(lost.map(([, kind]) => kind))];
  const by = { model: "by a model", notes: "from notes", digest: "by a digest, without a model", provider: "by the provider", person: "by a person", import: "by the agent it was recorded with" }[one.by] || one.by;
  return el("div", { class: "compaction" },
    el("h3", {}, `#${one.n} · ${one.trigger}, ${by}${one.is_undone ? " · undone later" : ""}`),
    el("p", { class: "sub" }, `${when(one.at)} · ${tokens(one.before)} → ${tokens(one.after)} tokens · ${plural(one.replaced, "message")} replaced · ${one.names ? `${count(one.names - one.lost.length)} of ${count(one.names)} names in use survived` : "no names in use"}${one.words.length ? ` · ${kept} of ${plural(one.words.length, "message")} of yours ${kept === 1 ? "is" : "are"} still there word for word` : ""}`),
    el("div", { class: "pair" },
      el("div", {}, el("h3", {}, "What it replaced"), el("div", { class: "box" }, list)),
      el("div", {}, el("h3", {}, "The summary"), el("div", { class: "box" }, el("pre", {}, one.summary + cut)))),
    lost.length ? el("h3", {}, `Names in use that the model could not see afterwards (${count(one.lost.length)})`) : null,
    ...kinds.map((kind) => el("p", { class: "chips" }, el("span", { class: "quiet" }, `${kind}:`), ...lost.filter(([, of]) => of === kind).map(([name]) => el("code", {}, name)))));
}

const timeColumn = { key: "at", label: "time", nowrap: true, wide: true, show: (row) => when(row.at) };
const numberColumn = { key: "n", label: "entry", num: true, show: (row) => `#${row.n}` };

const decisionsOf = (session) => (app.rows.find((row) => row.id === session.id) || {}).decisions || {};

function tablesOf(session) {
  const open = (row, list) => { const message = session.byNumber.get(row.n); if (message) openMessage(session, message); };
  return {
    changes: table({
      rows: session.changes, text: (row) => `${row.kind} ${row.text}`, opens: open,
      columns: [numberColumn, timeColumn, { key: "kind", label: "what", nowrap: true, show: (row) => el("span", { class: `tag ${row.is_expected ? "warn" : ["failed", "cachebroke"].includes(row.kind) ? "bad" : ""}` }, row.is_expected ? "expected break" : CHANGES[row.kind] || row.kind) }, { key: "text", label: "", show: (row) => lines(row.text) }, { key: "saved", label: "saved", num: true, show: (row) => (row.saved ? tokens(row.saved) : "") }, ...(page.can_undo ? [{ key: "n", label: "expected, saved until the next", num: true, wide: true, show: (row) => (decisionsOf(session)[row.n] || []).map(money).join(", ") }] : []), ...(page.can_undo ? [{ key: "n", label: "", show: (row) => (UNDOABLE.includes(row.kind) ? undoButton(session, row) : "") }] : [])],
    }),
    calls: table({
      rows: session.calls, at_once: 25, text: (row) => `${row.model} ${row.source} ${row.cause} ${row.detail}`, opens: (row) => openCall(session, row),
      columns: [numberColumn, timeColumn, { key: "read_tokens", label: "read", num: true, show: (row) => tokens(row.read_tokens) }, { key: "written_tokens", label: "written", num: true, show: (row) => tokens(row.written_tokens) }, { key: "uncached_tokens", label: "neither", num: true, wide: true, show: (row) => tokens(row.uncached_tokens) }, { key: "output_tokens", label: "output", num: true, wide: true, show: (row) => tokens(row.output_tokens) }, { key: "hit_share", label: "hit", num: true, show: (row) => percent(row.hit_share) }, { key: "usd", label: "cost", num: true, show: (row) => (row.is_priced ? money(row.usd) : "?") }, { key: "lost_usd", label: "lost", num: true, show: (row) => (row.lost_usd ? money(row.lost_usd) : "") },
        { key: "cause", label: "why", show: (row) => [row.source !== "main" ? el("span", { class: "tag" }, row.source) : "", row.cause ? el("span", { class: `tag ${row.is_expected ? "warn" : "bad"}` }, row.cause) : "", row.detail ? el("span", { class: "quiet wide" }, ` ${row.detail}`) : ""] }],
    }),
    words: table({
      rows: session.turns.filter((row) => row.said), text: (row) => row.said, opens: open,
      columns: [numberColumn, timeColumn, { key: "said", label: "what you said", show: (row) => lines(row.said) }, { key: "state", label: "now", nowrap: true, show: (row) => (row.state ? stateTag(row.state) : "") }, { key: "answers", label: "answers", num: true, wide: true }, { key: "tool_calls", label: "tools", num: true, wide: true }, { key: "usd", label: "cost", num: true, show: (row) => money(row.usd) }, { key: "after", label: "context", num: true, wide: true, show: (row) => tokens(row.after) }],
    }),
    messages: table({
      rows: session.messages, finds: (row) => query.also.has(row.n), text: (row) => `#${row.n} ${row.kind} ${row.tool} ${row.about} ${row.text}`, opens: (row, list) => openMessage(session, row, list),
      columns: [numberColumn, { ...timeColumn, show: (row) => when(row.at, false) }, { key: "kind", label: "what", nowrap: true, show: (row) => [el("span", { class: `tag ${row.is_error ? "bad" : ""}` }, row.is_error ? "error" : KINDS[row.kind] || row.kind)] }, { key: "tool", label: "tool", wide: true, nowrap: true }, { key: "text", label: "", show: (row) => lines(query.words.length ? snippet(row.text) : gist(row, 420)) }, { key: "chars", label: "characters", num: true, wide: true, show: (row) => count(row.chars) }, { key: "state", label: "now", nowrap: true, wide: true, show: (row) => stateTag(row.state) }],
    }),
  };
}

// A message in one line: a call with its main argument, then its result.
function gist(row, chars) {
  const text = row.text.replace(/^\[thinking\]\n/, "").replace(/^\[calls [^\n]*\n/, "");
  if (row.kind === "answer" && row.text.startsWith("[calls ")) return oneLine(`${row.tool}: ${row.about}`, chars);
  return oneLine(row.kind === "result" && row.about ? `${row.about} — ${text}` : text, chars);
}

// The position of the first match, so that a row shows why it was found.
function snippet(text) {
  const at = query.words.length ? text.toLowerCase().indexOf(query.words[0]) : -1;
  return at > 120 ? `… ${text.slice(at - 60, at + 400)}` : text;
}

function filters(made) {
  const all = ["all", "user", "answer", "result", "error", "left the view"];
  const tests = { all: () => true, user: (row) => row.kind === "user", answer: (row) => row.kind === "answer", result: (row) => row.kind === "result", error: (row) => row.is_error, "left the view": (row) => row.state !== "shown" };
  const buttons = all.map((name) => el("button", { type: "button", "aria-pressed": String(name === "all"), onclick: () => { buttons.forEach((one) => one.setAttribute("aria-pressed", one === buttons[all.indexOf(name)])); made.filter(tests[name]); } }, name));
  return el("div", { class: "tools" }, ...buttons);
}

function sessionView(data) {
  let session = withRows(data);
  byId("search").placeholder = "Search everything";
  query.listeners.clear();
  const made = tablesOf(session);
  let plots = charts(session, (call) => openCall(session, call));
  const compactions = () => el("div", {}, ...session.compactions.map((one) => compactionCard(session, one)));
  const dates = session.first_at ? `${when(session.first_at)} to ${when(session.last_at)} (${span(session.last_at - session.first_at)})` : "";
  const main = byId("main");
  const has = (id) => ({ compactions: session.compactions, changes: session.changes, words: made.words && session.turns }[id] || [1]).length > 0;
  main.replaceChildren(
    el("h1", {}, session.title ? oneLine(session.title, 160) : session.name),
    el("p", { class: "sub" }, [session.name, session.format, session.model, dates].filter(Boolean).join(" · "), live.on ? el("span", { class: "live" }, " · live") : ""),
    ...session.problems.map((line) => el("p", { class: "sub" }, line)),
    facts(session), plots.element,
    ...[
      has("compactions") ? section("compactions", "Compactions", "each next to what it replaced", { element: compactions(), counted: el("span", { class: "count" }, String(session.compactions.length)) }) : null,
      has("changes") ? section("changes", "Changes of the context", "cleared, moved to disk, summarised, undone, failed", made.changes) : null,
      section("calls", "Calls", "click a row for its numbers", made.calls),
      has("words") ? section("words", "Your words", "and whether the model still sees them", made.words) : null,
      section("messages", "Messages", session.cut_messages ? `${count(session.cut_messages)} long messages are cut here` : "", made.messages, filters(made.messages)),
    ].filter(Boolean));
  plots.draw();
  places(SECTIONS.filter(([id]) => byId(id)));
  return {
    redraw: () => plots.draw(),
    end: () => plots.end(),
    list: () => made.changes.update(session.changes),
    // New rows arrived. Tables keep their sorting and plots their zoom.
    update(fresh) {
      const zoomed = plots.range();
      session = withRows(fresh);
      for (const name of Object.keys(made)) made[name].update(name === "words" ? session.turns.filter((row) => row.said) : session[name]);
      const next = charts(session, (call) => openCall(session, call));
      plots.element.replaceWith(next.element);
      plots.end();
      plots = next;
      plots.draw();
      if (zoomed) plots.zoom(zoomed);
      main.querySelector(".facts").replaceWith(facts(session));
      const old = byId("compactions");
      if (old && session.compactions.length) old.lastChild.replaceWith(compactions());
    },
  };
}
