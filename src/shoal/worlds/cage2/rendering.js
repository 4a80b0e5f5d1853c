{
  aspect: 1.45, smooth: false,
  draw(ctx, frame, { width: w, height: h, colors: c, meta, total }) {
    const unit = w / 640, columns = meta.columns, free = c.track, held = c.series[3], owned = c.bad;
    ctx.translate(0, 20 * unit); // below the player's own caption
    const text = (words, x, y, size, color, align = "left", weight = 400) => {
      ctx.font = `${weight} ${size * unit}px system-ui, sans-serif`; ctx.fillStyle = color; ctx.textAlign = align; ctx.textBaseline = "middle";
      ctx.fillText(words, x, y);
    };
    const bit = (mask, k) => Math.floor(mask / 2 ** k) % 2 === 1, level = (host) => (bit(frame.owned, host) ? owned : bit(frame.held, host) ? held : free);
    const place = {}, boxW = 168 * unit, boxH = 46 * unit, top = 44 * unit, gap = 56 * unit;
    columns.forEach((column, k) => {
      const x = (22 + k * 206) * unit;
      ctx.fillStyle = c.surface; ctx.strokeStyle = c.line; ctx.lineWidth = unit;
      ctx.beginPath(); ctx.roundRect(x - 8 * unit, 12 * unit, boxW + 16 * unit, 322 * unit, 10 * unit); ctx.fill(); ctx.stroke();
      text(column.name, x, 28 * unit, 12, c.muted, "left", 600);
      column.hosts.forEach((host, row) => { place[host] = { x, y: top + row * gap }; });
    });
    for (const [host, { x, y }] of Object.entries(place)) {
      const seen = Math.floor(frame.table / 16 ** host) % 16, activity = seen & 3, belief = seen >> 2;
      ctx.fillStyle = level(+host); ctx.beginPath(); ctx.roundRect(x, y, boxW, boxH, 7 * unit); ctx.fill();
      ctx.fillStyle = c.surface; ctx.beginPath(); ctx.roundRect(x + 7 * unit, y + 2 * unit, boxW - 9 * unit, boxH - 4 * unit, 6 * unit); ctx.fill();
      text(meta.hosts[host], x + 16 * unit, y + 15 * unit, 13, c.ink, "left", 600);
      const words = ["clean", "unsure", "user level", "privileged"][belief];
      text(`Blue: ${words}`, x + 16 * unit, y + 33 * unit, 11, belief === 0 ? c.faint : belief === 3 ? owned : held);
      for (let d = 0; d < frame.decoys[host]; d++) { ctx.fillStyle = c.series[0]; ctx.beginPath(); ctx.arc(x + boxW - (12 + 11 * d) * unit, y + 33 * unit, 3.6 * unit, 0, 7); ctx.fill(); }
      if (activity) text(activity === 3 ? "exploit!" : "scan", x + boxW - 8 * unit, y + 15 * unit, 11, activity === 3 ? owned : c.series[0], "right", 600);
    }
    const [kind, target, success, exploit] = frame.red, arrow = kind === 1 ? columns[target] && place[columns[target].hosts[0]] : place[target];
    if (kind && arrow) {
      const from = place[meta.base], color = success === 1 ? owned : c.muted, y = arrow.y + boxH / 2, start = [from.x + boxW, from.y + boxH / 2], end = [arrow.x - 2 * unit, y];
      ctx.strokeStyle = color; ctx.lineWidth = 2.2 * unit; ctx.setLineDash(success === 1 ? [] : [5 * unit, 4 * unit]);
      ctx.beginPath(); ctx.moveTo(...start);
      if (end[0] < start[0]) { ctx.moveTo(from.x - 2 * unit, start[1]); ctx.bezierCurveTo(from.x - 16 * unit, start[1], from.x - 16 * unit, y, end[0], y); }
      else ctx.bezierCurveTo(start[0] + 24 * unit, start[1], end[0] - 24 * unit, y, ...end);
      ctx.stroke(); ctx.setLineDash([]);
      ctx.fillStyle = color; ctx.beginPath(); ctx.arc(end[0], y, 4 * unit, 0, 7); ctx.fill();
    }
    const who = kind === 1 ? meta.subnets[target] : meta.hosts[target] || "", by = exploit >= 0 ? ` by ${meta.exploits[exploit]}` : "";
    const result = kind === 0 ? "" : success === 1 ? "" : ", in vain";
    text("Red", 14 * unit, 354 * unit, 12, owned, "left", 700); text(`${meta.red[kind]} ${who}${by}${result}`, 52 * unit, 354 * unit, 12, c.ink);
    text("Blue", 14 * unit, 376 * unit, 12, c.series[0], "left", 700); text(meta.blue[frame.blue], 52 * unit, 376 * unit, 12, c.ink);
    text(frame.service ? "operations running" : "operations stopped", w - 14 * unit, 354 * unit, 12, frame.service ? c.good : owned, "right", 600);
    text(`step costs ${(-frame.tenths / 10).toFixed(1)}, so far ${(-total).toFixed(1)}`, w - 14 * unit, 376 * unit, 12, c.muted, "right");
    [["free", free], ["user level", held], ["privileged", owned]].forEach(([name, color], k) => {
      const x = (16 + 100 * k) * unit, y = 402 * unit;
      ctx.fillStyle = color; ctx.fillRect(x, y - 6 * unit, 7 * unit, 12 * unit); text(name, x + 12 * unit, y, 11, c.muted);
    });
    ctx.fillStyle = c.series[0]; ctx.beginPath(); ctx.arc(334 * unit, 402 * unit, 3.6 * unit, 0, 7); ctx.fill(); text("decoy", 344 * unit, 402 * unit, 11, c.muted);
    text("bar: the truth · words: what Blue believes", w - 14 * unit, 402 * unit, 11, c.faint, "right");
  },
}
