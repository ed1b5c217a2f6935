"use strict";
// Sorting and searching. Without this script the page shows everything in its first order.
const number = (text) => Number.parseFloat(text);

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        const difference = number(x) - number(y);
        return Number.isNaN(difference) ? x.localeCompare(y) : difference || x.localeCompare(y);
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? order(b, a) : order(a, b)));
      table.tBodies[0].append(...rows);
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

const list = document.getElementById("list");
if (list) {
  const [search, sort, fold, count] = ["search", "sort", "fold", "count"].map((id) =>
    document.getElementById(id));
  const segments = [...list.children];
  const texts = new Map();
  const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
  // The source, the reference and the outputs of a segment; no names, scores or trees.
  const text = (one) => {
    if (!texts.has(one)) {
      const parts = one.querySelectorAll(":scope > summary > bdi, :scope > dl > dd");
      texts.set(one, [...parts].map((part) => plain(part.textContent)).join("\n"));
    }
    return texts.get(one);
  };
  const show = () => {
    const words = plain(search.value);
    let n = 0;
    for (const one of segments) {
      one.hidden = !text(one).includes(words);
      n += one.hidden ? 0 : 1;
    }
    count.textContent = `${n.toLocaleString("en")} ${n === 1 ? "segment" : "segments"}`;
  };
  const keys = {
    d: (one) => -number(one.dataset.d),
    i: (one) => number(one.dataset.i),
    l: (one) => number(one.dataset.l),
  };
  const score = (system) => (one) => number(one.querySelectorAll("dt i")[system].textContent);
  const gain = (system) => (one) => score(0)(one) - score(system)(one);  // the greatest first
  const keyOf = (value) => {
    if (value in keys) return keys[value];
    const system = number(value.slice(1));
    if (value[0] === "c") return score(system);
    return value[0] === "g" ? gain(system) : (one) => -gain(system)(one);
  };
  const rearrange = () => {
    const key = keyOf(sort.value);
    const order = new Map(segments.map((one) => [one, key(one)]));
    list.append(...segments.sort((a, b) =>
      order.get(a) - order.get(b) || keys.i(a) - keys.i(b)));
  };
  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 120);
  });
  sort.addEventListener("change", rearrange);
  fold.addEventListener("click", () => {
    const folded = fold.textContent === "Fold all";
    for (const one of segments) one.open = !folded;
    fold.textContent = folded ? "Unfold all" : "Fold all";
  });
  search.form.addEventListener("submit", (event) => event.preventDefault());
}
