"use strict";
// Blocks that draw data. Each is `(block, card) => void` and is called again when its size, the theme or the smoothing changes.
const Shoal = { blocks: {}, renderers: {}, smoothing: 0.6 };

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) key in node ? (node[key] = value) : node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const svgNode = (tag, attributes = {}, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const color = (index) => `var(--c${index % 8})`;

/** A number for people: 1.2M, 45.3k, 0.00031. */
function pretty(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e9) return trim(value / 1e9) + "G";
  if (size >= 1e6) return trim(value / 1e6) + "M";
  if (size >= 1e4) return trim(value / 1e3) + "k";
  if (size && size < 1e-3) return value.toExponential(1).replace("e-", "e−").replace(/^-/, "−");
  return trim(value);
}
const trim = (value) => String(+value.toPrecision(Math.abs(value) >= 100 ? 4 : 3)).replace("-", "−");

/** Round axis positions covering [low, high]. */
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(+(i * step).toPrecision(12));
  return out;
}

/** Exponential moving average without the bias of its start; gaps (null) stay gaps. */
function smooth(values, weight) {
  let average = 0, mass = 0;
  return values.map((value) => {
    if (value === null) return null;
    average = weight * average + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return average / mass;
  });
}

function extent(lists) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const v of list) if (v !== null && v !== undefined) { if (v < low) low = v; if (v > high) high = v; }
  return low <= high ? [low, high] : [0, 1];
}

function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; sorted[middle] < value ? (low = middle) : (high = middle); }
  return value - sorted[low] < sorted[high] - value ? low : high;
}

function legend(names, tint = color) {
  return el("div", { className: "legend" }, ...names.map((name, i) => {
    const mark = el("i"); mark.style.background = tint(i);
    return el("span", {}, mark, name);
  }));
}

/** Axes, grid and scales for a plot; returns the svg and the two scale functions. */
function frame(card, block, [x0, x1], [y0, y1], height) {
  const left = 46, right = 10, top = 6, bottom = 22, width = Math.max(card.clientWidth - 34, 160);
  if (x1 === x0) { x0 -= Math.abs(x0) * 0.5 || 1; x1 += Math.abs(x1) * 0.5 || 1; }
  if (y1 === y0) { y0 -= Math.abs(y0) * 0.1 || 1; y1 += Math.abs(y1) * 0.1 || 1; }
  const pad = (y1 - y0) * 0.05;
  if (!block.zero || y0 < 0) y0 -= pad;
  y1 += pad;
  const X = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right);
  const Y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - top - bottom);
  const svg = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": block.title || "chart" });
  for (const v of ticks(y0, y1, 4)) {
    svg.append(svgNode("line", { class: "grid", x1: left, x2: width - right, y1: Y(v), y2: Y(v) }));
    svg.append(svgNode("text", { x: left - 7, y: Y(v) + 4, "text-anchor": "end" }, block.percent ? pretty(v * 100) + "%" : pretty(v)));
  }
  const below = block.names ? block.names.map((_, k) => k) : ticks(x0, x1, Math.max(2, Math.min(6, width / 110)));
  for (const v of below) svg.append(svgNode("text", { x: X(v), y: height - 6, "text-anchor": "middle" }, block.names ? block.names[v] : pretty(block.log ? 10 ** v : v)));
  svg.append(svgNode("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  return { svg, X, Y, width, left, right, top, bottom, invert: (px) => x0 + ((px - left) / (width - left - right)) * (x1 - x0) };
}

function path(xs, ys, X, Y) {
  let d = "", pen = false;
  for (let i = 0; i < xs.length; i++) {
    if (ys[i] === null || ys[i] === undefined) { pen = false; continue; }
    d += `${pen ? "L" : "M"}${X(xs[i]).toFixed(1)} ${Y(ys[i]).toFixed(1)}`;
    pen = true;
  }
  return d;
}

/** A crosshair that names the values under the pointer. */
function hover(plot, height, block, describe) {
  const cross = svgNode("line", { class: "cross", y1: plot.top, y2: height - plot.bottom, visibility: "hidden" });
  plot.svg.append(cross);
  const tip = document.getElementById("tip");
  plot.svg.addEventListener("pointermove", (event) => {
    const box = plot.svg.getBoundingClientRect();
    const { x, rows } = describe(plot.invert(((event.clientX - box.left) / box.width) * plot.width));
    if (x === undefined) return;
    cross.setAttribute("x1", plot.X(x)); cross.setAttribute("x2", plot.X(x)); cross.setAttribute("visibility", "visible");
    tip.replaceChildren(el("div", {}, el("span", {}, block.x || "step"), el("b", {}, pretty(x))), ...rows.map(([name, value]) => el("div", {}, el("span", {}, name), el("b", {}, value))));
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  });
  plot.svg.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); tip.hidden = true; });
}

Shoal.blocks.lines = (block, card) => {
  const height = block.height || 210, raws = block.series.map((s) => s.y);
  const shown = block.smooth ? raws.map((y) => smooth(y, Shoal.smoothing)) : raws;
  const spread = block.series.flatMap((s) => [s.low, s.high, s.min, s.max].filter(Boolean));
  const [y0, y1] = extent([...raws, ...spread]);
  const plot = frame(card, block, extent(block.series.map((s) => s.x)), [block.zero ? Math.min(0, y0) : y0, y1], height);
  block.series.forEach((s, i) => {
    const stroke = color(s.color ?? i);
    if (s.faint) { plot.svg.append(svgNode("path", { d: path(s.x, s.y, plot.X, plot.Y), fill: "none", stroke, "stroke-width": 1, opacity: 0.3 })); return; }
    const low = s.low || s.min, high = s.high || s.max;
    if (low) {
      const around = path([...s.x, ...[...s.x].reverse()], [...low, ...[...high].reverse()], plot.X, plot.Y);
      plot.svg.append(svgNode("path", { d: around + "Z", fill: stroke, opacity: 0.18 }));
    } else if (block.smooth && Shoal.smoothing > 0) plot.svg.append(svgNode("path", { d: path(s.x, raws[i], plot.X, plot.Y), fill: "none", stroke, "stroke-width": 1, opacity: 0.28 }));
    plot.svg.append(svgNode("path", { d: path(s.x, shown[i], plot.X, plot.Y), fill: "none", stroke, "stroke-width": 1.9, "stroke-linejoin": "round" }));
    if (s.x.length < 40) s.x.forEach((x, j) => s.y[j] !== null && plot.svg.append(svgNode("circle", { cx: plot.X(x), cy: plot.Y(shown[i][j]), r: 2.6, fill: stroke })));
  });
  hover(plot, height, block, (at) => {
    let x;
    const rows = block.series.filter((s) => s.x.length && !s.faint).map((s) => {
      const j = nearest(s.x, at), i = block.series.indexOf(s);
      if (x === undefined || Math.abs(s.x[j] - at) < Math.abs(x - at)) x = s.x[j];
      const range = s.low ? ` [${pretty(s.low[j])}, ${pretty(s.high[j])}]` : "";
      return [s.name, pretty(shown[i][j]) + range];
    });
    return { x, rows };
  });
  card.append(plot.svg);
  const named = block.series.filter((s) => !s.faint);
  if (named.length > 1) card.append(legend(named.map((s) => s.name), (i) => color(named[i].color ?? block.series.indexOf(named[i]))));
};

/** A dot for every pair of numbers. What lies below is a number, its logarithm (`log`), or one of `names`. */
Shoal.blocks.dots = (block, card) => {
  const height = block.height || 210, below = block.names ? [-0.5, block.names.length - 0.5] : extent([block.xs]);
  const plot = frame(card, block, below, extent([block.ys]), height);
  block.xs.forEach((x, i) => block.ys[i] !== null && plot.svg.append(svgNode("circle", { cx: plot.X(x), cy: plot.Y(block.ys[i]), r: 3.2, fill: color(0), opacity: 0.6 })));
  card.append(plot.svg, el("div", { className: "legend" }, block.x || ""));
};

/** Shares of a whole over time, stacked to one. */
Shoal.blocks.shares = (block, card) => {
  const height = block.height || 210, xs = block.xs, plot = frame(card, { ...block, percent: true, zero: true }, extent([xs]), [0, 0.952], height);
  let below = xs.map(() => 0);
  block.series.forEach((s, i) => {
    const above = below.map((b, j) => b + s.y[j]);
    const d = path([...xs, ...[...xs].reverse()], [...above, ...[...below].reverse()], plot.X, plot.Y);
    plot.svg.append(svgNode("path", { d: d + "Z", fill: color(s.color ?? i), opacity: 0.85, stroke: "var(--surface)", "stroke-width": 0.7 }));
    below = above;
  });
  hover(plot, height, block, (at) => {
    const j = nearest(xs, at);
    return { x: xs[j], rows: block.series.map((s) => [s.name, (100 * s.y[j]).toFixed(1) + "%"]) };
  });
  card.append(plot.svg, legend(block.series.map((s) => s.name), (i) => color(block.series[i].color ?? i)));
};

/** One bar cut into named parts. */
Shoal.blocks.parts = (block, card) => {
  const total = block.items.reduce((sum, item) => sum + item.value, 0) || 1, bar = el("div", { className: "stack" });
  block.items.forEach((item, i) => {
    const part = el("div", { title: `${item.name}: ${pretty(item.value)} ${block.unit || ""}` });
    part.style.flex = item.value / total; part.style.background = color(item.color ?? i);
    bar.append(part);
  });
  card.append(bar, legend(block.items.map((i) => `${i.name} ${((100 * i.value) / total).toFixed(1)}% · ${pretty(i.value)} ${block.unit || ""}`), (i) => color(block.items[i].color ?? i)));
};

/** Horizontal bars, each with an interval if it has one. */
Shoal.blocks.bars = (block, card) => {
  const row = 28, width = Math.max(card.clientWidth - 34, 160), left = Math.min(160, width * 0.35), right = 130;
  const [low, high] = extent([[0], block.items.flatMap((i) => [i.value, i.low ?? i.value, i.high ?? i.value])]);
  const X = (v) => left + ((v - low) / (high - low || 1)) * (width - left - right), height = row * block.items.length;
  const svg = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": block.title || "bars" });
  block.items.forEach((item, i) => {
    const y = i * row + row / 2, range = item.low !== undefined;
    svg.append(svgNode("text", { x: left - 10, y: y + 4, "text-anchor": "end" }, item.name));
    svg.append(svgNode("rect", { x: Math.min(X(0), X(item.value)), y: y - 8, width: Math.max(1, Math.abs(X(item.value) - X(0))), height: 16, rx: 4, fill: color(item.color ?? 0), opacity: 0.85 }));
    if (range) svg.append(svgNode("line", { x1: X(item.low), x2: X(item.high), y1: y, y2: y, stroke: "var(--ink)", "stroke-width": 1.6 }));
    svg.append(svgNode("text", { x: X(high) + 10, y: y + 4 }, pretty(item.value) + (range ? ` [${pretty(item.low)}, ${pretty(item.high)}]` : "")));
  });
  card.append(svg);
};

/** How often values occur: counts of equal bins between `low` and `high`. */
Shoal.blocks.histogram = (block, card) => {
  const height = block.height || 210, n = block.counts.length, bin = (block.high - block.low) / n || 1;
  const plot = frame(card, { ...block, zero: true }, [block.low, block.high], [0, Math.max(...block.counts)], height);
  block.counts.forEach((count, i) => {
    const x = plot.X(block.low + i * bin) + 1, end = plot.X(block.low + (i + 1) * bin) - 1;
    plot.svg.append(svgNode("rect", { x, y: plot.Y(count), width: Math.max(1, end - x), height: plot.Y(0) - plot.Y(count), rx: 2, fill: color(0), opacity: 0.85 }));
  });
  hover(plot, height, block, (at) => {
    const i = Math.max(0, Math.min(n - 1, Math.floor((at - block.low) / bin)));
    return { x: block.low + (i + 0.5) * bin, rows: [["count", pretty(block.counts[i])]] };
  });
  card.append(plot.svg);
};

/** A table of numbers shaded between `low` and `high`: win matrices. */
Shoal.blocks.matrix = (block, card) => {
  const head = el("tr", {}, el("th"), ...block.columns.map((name) => el("th", {}, name)));
  const body = block.values.map((values, r) => el("tr", {}, el("th", {}, block.rows[r]), ...values.map((value) => {
    const cell = el("td", {}, value === null ? "" : block.percent ? (100 * value).toFixed(0) + "%" : pretty(value));
    const share = value === null ? 0.5 : (value - block.low) / (block.high - block.low || 1);
    const side = share >= 0.5 ? "var(--c0)" : "var(--c1)";
    cell.style.background = `color-mix(in srgb, ${side} ${Math.round(Math.abs(share - 0.5) * 110)}%, transparent)`;
    return cell;
  })));
  card.append(el("div", { className: "scroll" }, el("table", { className: "matrix" }, el("thead", {}, head), el("tbody", {}, ...body))));
};
