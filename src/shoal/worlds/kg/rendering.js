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
    const wrap = (text, room) => {  // at most two lines, broken between goals
      const lines = [""];
      for (const part of text.split(/(?<= & )/)) {
        if (lines.length < 2 && lines[0] && ctx.measureText(lines[0] + part).width > room) lines.push("");
        lines[lines.length - 1] += part;
      }
      return lines;
    };
    let y = 40 * unit;  // below the player's own line
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
      const chosen = index === action, x = left + 56 * unit;
      ctx.fillStyle = c.track; ctx.fillRect(left, y - 0.85 * line, 46 * unit, 1.1 * line);
      ctx.fillStyle = chosen ? c.series[1] : c.faint; ctx.fillRect(left, y - 0.85 * line, 46 * unit * share, 1.1 * line);
      write(`${Math.round(100 * share)}%`, left + 6 * unit, y, c.ink);
      ctx.font = `${chosen ? "bold" : ""} ${12 * unit}px ui-monospace, monospace`;
      wrap(text, w - x - left).forEach((part, k) => write(part, x, (y += k && line), chosen ? c.ink : c.muted, chosen ? "bold" : ""));
    }
  },
}
