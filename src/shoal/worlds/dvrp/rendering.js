{
  aspect: 1.3, smooth: false,
  draw(ctx, frame, { width: w, height: h, colors: c, meta, reward }) {
    const unit = Math.min(w / 640, h / 480), size = 12 * unit, foot = 78 * unit, side = 140 * unit, edge = 22 * unit;
    const xs = meta.cells.map((p) => p[0]), ys = meta.cells.map((p) => p[1]), low = [Math.min(...xs), Math.min(...ys)], span = [Math.max(...xs) - low[0] || 1, Math.max(...ys) - low[1] || 1];
    const scale = Math.min((w - side - 2 * edge) / span[0], (h - foot - 2 * edge) / span[1]);
    const left = edge + (w - side - 2 * edge - span[0] * scale) / 2;
    const at = (cell, shift = 0) => [left + (meta.cells[cell][0] - low[0]) * scale + shift, h - foot - edge - (meta.cells[cell][1] - low[1]) * scale + shift];
    const text = (words, x, y, color, weight = 400) => { ctx.font = `${weight} ${size}px system-ui, sans-serif`; ctx.fillStyle = color; ctx.textAlign = "left"; ctx.textBaseline = "middle"; ctx.fillText(words, x, y); };
    const dot = (cell, radius, fill, line, shift = 0) => { ctx.beginPath(); ctx.arc(...at(cell, shift), radius, 0, 7); if (fill) { ctx.fillStyle = fill; ctx.fill(); } if (line) { ctx.strokeStyle = line; ctx.lineWidth = 2 * unit; ctx.stroke(); } };
    const clock = (m) => `${String(Math.floor(m / 60)).padStart(2, "0")}:${String(m % 60).padStart(2, "0")}`;
    meta.cells.forEach((_, cell) => dot(cell, 9 * unit, c.grid));
    frame.routes.forEach((route, v) => {
      const color = c.series[v % c.series.length], shift = 3 * unit * (v - frame.routes.length / 2), path = [meta.depot, ...route, meta.depot].map((cell) => at(cell, shift));
      ctx.strokeStyle = color; ctx.lineWidth = 2.4 * unit; ctx.lineJoin = "round"; ctx.globalAlpha = 0.85;
      ctx.beginPath(); path.forEach((p, i) => (i ? ctx.lineTo(...p) : ctx.moveTo(...p))); ctx.stroke(); ctx.globalAlpha = 1;
      route.forEach((cell, i) => dot(cell, 3.4 * unit, frame.stops[v][i] > 0 ? color : c.surface, color, shift));
      text(`vehicle ${v + 1}: ${route.length} stops`, w - side, 2 * edge + 18 * unit * v, color, 600);
    });
    const tone = frame.answer && (!frame.answer.accepted ? c.bad : frame.answer.shift.some(Boolean) ? c.good : c.muted);
    if (frame.answer) {
      ctx.strokeStyle = tone; ctx.lineWidth = 9 * unit; ctx.globalAlpha = 0.3; ctx.lineCap = "round";
      ctx.beginPath(); ctx.moveTo(...at(frame.answer.from)); ctx.lineTo(...at(frame.answer.to)); ctx.stroke(); ctx.globalAlpha = 1; ctx.lineCap = "butt";
    }
    const [dx, dy] = at(meta.depot);
    ctx.fillStyle = c.ink; ctx.fillRect(dx - 6 * unit, dy - 6 * unit, 12 * unit, 12 * unit);
    let words = "all requests are booked";
    if (frame.asks) {
      const { customer, from, to, pickup, dropoff } = frame.asks, a = at(from), b = at(to);
      ctx.strokeStyle = c.bad; ctx.lineWidth = 2.2 * unit; ctx.setLineDash([6 * unit, 4 * unit]);
      ctx.beginPath(); ctx.moveTo(...a); ctx.lineTo(...b); ctx.stroke(); ctx.setLineDash([]);
      dot(from, 6 * unit, c.bad, c.bad); dot(to, 6 * unit, c.surface, c.bad);
      words = `customer ${customer} asks: ${clock(pickup[0])}–${clock(pickup[1])} to ${clock(dropoff[0])}–${clock(dropoff[1])}`;
    }
    text(`${frame.step} of ${meta.customers} requests booked; ${words}`, edge, h - 62 * unit, c.ink, 600);
    if (frame.answer) {
      const { customer, accepted, shift: [early, late] } = frame.answer, moved = early || late;
      const said = !accepted ? "declined the offer" : moved ? `accepted ${-early} min earlier, ${late} min later` : "was taken as asked for";
      text(`customer ${customer} ${said} (${reward >= 0 ? "+" : ""}${reward.toFixed(2)})`, edge, h - 42 * unit, tone);
    }
    const saved = frame.noop === undefined ? "" : `, without offers ${frame.noop.toFixed(1)} ${meta.unit}`;
    text(`${frame.cost.toFixed(1)} ${meta.unit}${saved}`, edge, h - 22 * unit, c.ink);
    ["dashed: asks now", "wide: last answer", "filled: pickup", "hollow: dropoff"].forEach((words, i) => text(words, w - side, h - foot - edge - 18 * unit * (3 - i), c.muted));
  },
}
