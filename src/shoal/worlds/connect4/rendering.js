{
  aspect: 7 / 6, smooth: false,
  draw(ctx, frame, { width: w, height: h, colors: c }) {
    const cell = Math.min(w / 7, h / 6), left = (w - 7 * cell) / 2, top = (h - 6 * cell) / 2;
    ctx.fillStyle = c.faint; ctx.beginPath(); ctx.roundRect(left, top, 7 * cell, 6 * cell, cell / 4); ctx.fill();
    for (let at = 0; at < 42; at++) {
      ctx.fillStyle = [c.surface, c.series[0], c.series[1]][frame[at]];
      ctx.beginPath();
      ctx.arc(left + (at % 7 + 0.5) * cell, top + (5.5 - Math.floor(at / 7)) * cell, 0.42 * cell, 0, 7);
      ctx.fill();
    }
  },
}
