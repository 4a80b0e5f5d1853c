"use strict";
// Builds the page from the report's JSON: a header, then sections of blocks.

Shoal.blocks.stats = (block, card) => {
  card.classList.add("bare");
  card.append(el("div", { className: "stats" }, ...block.items.map((item) => el("div", { className: "stat", title: item.hint || "" }, el("b", {}, pretty(item.value)), el("span", {}, item.label)))));
};

Shoal.blocks.text = (block, card) => card.append(el("pre", {}, block.text));

Shoal.blocks.table = (block, card) => {
  const isNumber = block.columns.map((_, c) => block.rows.length > 0 && block.rows.every((row) => typeof row[c] === "number" || row[c] === null));
  const cell = (tag) => (value, c) => el(tag, { className: isNumber[c] ? "number" : "" }, tag === "td" && typeof value === "number" ? pretty(value) : value ?? "–");
  card.append(el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...block.columns.map(cell("th")))), el("tbody", {}, ...block.rows.map((row) => el("tr", {}, ...row.map(cell("td"))))))));
};

Shoal.blocks.fields = (block, card) => {
  const list = el("dl", { className: "fields" });
  const add = (fields) => {
    const nested = [];
    for (const [key, value] of Object.entries(fields)) {
      if (value && typeof value === "object" && !Array.isArray(value)) nested.push([key, value]);
      else list.append(el("dt", {}, key), el("dd", {}, Array.isArray(value) ? JSON.stringify(value) : String(value ?? "–")));
    }
    for (const [key, value] of nested.filter(([, table]) => Object.keys(table).length)) { list.append(el("dt", { className: "group" }, key)); add(value); }
  };
  add(block.fields);
  card.append(list);
};

/** A block whose drawing comes with the section: Shoal.blocks[block.draw](block, card, tools). */
Shoal.blocks.custom = (block, card) => Shoal.blocks[block.draw](block, card, { el, svgNode, pretty, color, frame, path, hover, legend, themeColors });

function drawBlock(block, card) {
  const draw = Shoal.blocks[block.kind];
  if (!draw.keeps) card.replaceChildren();
  if (block.title && !card.querySelector("h3")) card.append(el("h3", {}, block.title, el("span", {}, block.aside || "")));
  draw(block, card);
}

const redraws = [];
const redrawAll = (only) => redraws.forEach(({ block, redraw }) => (!only || only(block)) && redraw());

function buildSection(section) {
  const blocks = el("div", { className: "blocks" }), head = el("div", { className: "head" }, el("div", {}, el("h2", {}, section.title), el("p", { className: "note" }, section.note || "")));
  if (section.blocks.some((b) => b.smooth) && !document.getElementById("smoothing")) {
    const slider = el("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: Shoal.smoothing, oninput: () => { Shoal.smoothing = +slider.value; redrawAll((b) => b.smooth); } });
    head.append(el("label", { id: "smoothing" }, "smoothing", slider));
  }
  for (const block of section.blocks) {
    const card = el("div", { className: `card ${block.size || ""}` }), redraw = () => drawBlock(block, card);
    blocks.append(card);
    redraws.push({ block, redraw, card });
  }
  return el("section", { id: section.id }, head, blocks);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("shoal-theme", theme); } catch { /* a file opened without storage */ }
  redrawAll();
}

function wantedTheme() {
  const asked = new URLSearchParams(location.search).get("theme");
  let kept = null;
  try { kept = localStorage.getItem("shoal-theme"); } catch { /* as above */ }
  return asked || kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

(function build() {
  const report = JSON.parse(document.getElementById("report").textContent);
  const flip = el("button", { type: "button", onclick: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark") }, "◐ theme");
  const title = el("h1", {}, report.title, " ", el("small", {}, report.subtitle));
  const links = el("nav", {}, ...report.sections.map((s) => el("a", { href: `#${s.id}` }, s.title)));
  document.getElementById("top").append(el("div", {}, title, el("p", {}, report.caption)), flip, links);
  document.documentElement.dataset.theme = wantedTheme();
  document.body.classList.toggle("embedded", new URLSearchParams(location.search).has("embed")); // inside another page: blocks alone
  for (const section of report.sections) document.getElementById("sections").append(buildSection(section));
  redrawAll();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redrawAll((b) => b.kind !== "replay"); } });
})();
