// A table that can be sorted by any column, is searched with the page, and draws more rows on request.
const ROWS_AT_ONCE = 60;

function table({ columns, rows, opens, text, finds = () => false, sorted = null, at_once = ROWS_AT_ONCE }) {
  let all = rows, sort = sorted, limit = at_once, keep = () => true;
  const found = new WeakMap();
  const haystack = (row) => {
    if (!found.has(row)) found.set(row, text(row).toLowerCase());
    return found.get(row);
  };
  const body = el("tbody");
  const heads = columns.map((column) => {
    const button = el("button", { type: "button", onclick: () => sortBy(column) }, column.label);
    return el("th", { class: `${column.num ? "num" : ""} ${column.wide ? "wide" : ""}`.trim(), scope: "col" }, button);
  });
  const more = el("button", { type: "button", class: "more", onclick: () => { limit += 5 * at_once; draw(); } });
  const counted = el("span", { class: "count" });
  const element = el("div", {}, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body)), more);

  function sortBy(column) {
    const falls = sort && sort.key === column.key ? !sort.falls : Boolean(column.num);
    sort = { key: column.key, falls };
    draw();
  }

  function chosen() {
    let picked = all.filter(keep);
    if (query.words.length) picked = picked.filter((row) => query.finds(haystack(row)) || finds(row));
    if (sort) {
      const column = columns.find((one) => one.key === sort.key);
      const value = column.value || ((row) => row[column.key]);
      const way = sort.falls ? -1 : 1;
      picked = picked.map((row) => [value(row), row]).sort(([a], [b]) => (a < b ? -way : a > b ? way : 0)).map(([, row]) => row);
    }
    return picked;
  }

  function draw() {
    const picked = chosen();
    body.replaceChildren(...picked.slice(0, limit).map(line));
    heads.forEach((head, i) => {
      if (sort && sort.key === columns[i].key) head.setAttribute("aria-sort", sort.falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    more.hidden = picked.length <= limit;
    more.textContent = `Show more (${count(picked.length - limit)} left)`;
    counted.textContent = picked.length === all.length ? count(all.length) : `${count(picked.length)} of ${count(all.length)}`;
  }

  function line(row) {
    const cells = columns.map((column) => {
      const shown = column.show ? column.show(row) : String(row[column.key]);
      const parts = Array.isArray(shown) ? shown : [shown];
      return el("td", { class: [column.num && "num", column.wide && "wide", column.nowrap && "nowrap"].filter(Boolean).join(" ") }, ...parts);
    });
    if (!opens) return el("tr", {}, ...cells);
    const open = () => opens(row, chosen);
    return el("tr", { class: "opens", tabindex: 0, onclick: open, onkeydown: (event) => event.key === "Enter" && open() }, ...cells);
  }

  query.listeners.add(() => { limit = at_once; draw(); });
  draw();
  return {
    element, counted,
    update(fresh) { all = fresh; draw(); },
    filter(test) { keep = test; limit = at_once; draw(); },
  };
}

function lines(text) {
  return el("span", { class: "line" }, ...marked(oneLine(text, 420)));
}
