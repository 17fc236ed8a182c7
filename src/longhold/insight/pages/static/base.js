// Shared functions: elements, numbers and rows. Text from outside only ever becomes a text node.
const byId = (id) => document.getElementById(id);

function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const count = (value) => Math.round(value).toLocaleString("en-US");
const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const percent = (share) => `${Math.round(share * 100)} %`;

function tokens(value) {
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  if (size < 999500) return `${(value / 1000).toFixed(size < 99950 ? 1 : 0)}K`;
  return `${(value / 1e6).toFixed(2)}M`;
}

function money(value) {
  const size = Math.abs(value);
  if (size >= 1000) return `$${count(value)}`;
  if (size >= 0.1 || size === 0) return `$${value.toFixed(2)}`;
  return `$${value.toFixed(size < 0.01 ? 4 : 3)}`;
}

function when(at, withDay = true) {
  if (!at) return "";
  const time = new Date(at * 1000);
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return withDay ? `${time.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" })}, ${clock}` : clock;
}

function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
}

// Tables arrive as columns. A row is an object that is created once.
function rowsOf(columns) {
  const names = Object.keys(columns);
  const rows = [];
  for (let i = 0; i < (names.length ? columns[names[0]].length : 0); i++) {
    const row = {};
    for (const name of names) row[name] = columns[name][i];
    rows.push(row);
  }
  return rows;
}

const oneLine = (text, chars = 240) => text.slice(0, chars * 2).replace(/\s+/g, " ").trim().slice(0, chars);

// The current search. Parts of the page listen to it and report how many rows they found.
const query = {
  text: "",
  words: [],
  also: new Set(), // messages that match only in the cut part of their text; the server finds them
  listeners: new Set(),
  set(text) {
    this.text = text;
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.also = new Set();
    this.changed();
  },
  changed() {
    for (const listener of this.listeners) listener();
  },
  finds(text) {
    return this.words.every((word) => text.includes(word));
  },
};

function marked(text) {
  const words = query.words.filter((word) => word.length > 1);
  if (!words.length) return [text];
  const pattern = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gi");
  const parts = [];
  let done = 0;
  for (const found of text.matchAll(pattern)) {
    if (parts.length > 2000) break;
    parts.push(text.slice(done, found.index), el("mark", {}, found[0]));
    done = found.index + found[0].length;
  }
  return [...parts, text.slice(done)];
}
