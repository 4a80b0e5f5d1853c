{
  aspect: 1.25, smooth: false,
  draw(ctx, frame, { width: w, height: h, colors: c, action }) {
    const unit = w / 440, line = 17 * unit, left = 14 * unit;
    const ends = { True: c.good, EndTrue: c.good, False: c.bad, End: c.bad };
    const fit = (text, room) => {
      if (ctx.measureText(text).width <= room) return text;
      while (text.length > 4 && ctx.measureText(text + "…").width > room) text = text.slice(0, -1);
      return text + "…";
    };
    const write = (text, x, y, color, weight = "") => { ctx.font = `${weight} ${12 * unit}px ui-monospace, monospace`; ctx.fillStyle = color; ctx.fillText(fit(text, w - x - left), x, y); };
    let y = 24 * unit;
    write(`${frame.query}?`, left, y, c.ink, "bold");
    write(frame.label === 1 ? "true triple" : "corrupted", left, (y += line), c.muted);
    y += 0.6 * line;
    for (const goal of frame.goals) write((goal in ends ? "" : "· ") + goal, left, (y += line), ends[goal] || c.series[0], goal in ends ? "bold" : "");
    y += 1.2 * line;
    if (frame.goals[0] in ends) return;
    write(`${frame.count} successor${frame.count === 1 ? "" : "s"}`, left, y, c.muted);
    for (const [index, text, share] of frame.options) {
      y += 1.35 * line;
      if (y > h) break;
      ctx.fillStyle = c.track; ctx.fillRect(left, y - 0.85 * line, 46 * unit, 1.1 * line);
      ctx.fillStyle = index === action ? c.series[1] : c.faint; ctx.fillRect(left, y - 0.85 * line, 46 * unit * share, 1.1 * line);
      write(`${Math.round(100 * share)}%`, left + 6 * unit, y, c.ink);
      write(text, left + 56 * unit, y, index === action ? c.ink : c.muted, index === action ? "bold" : "");
    }
  },
}
