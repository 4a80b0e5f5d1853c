{
  aspect: 1.4, smooth: false,
  draw(ctx, frame, { width: w, height: h, colors: c, meta }) {
    const side = Math.min(h, w / 1.4), cell = side / 10, gap = cell * 0.06, left = (w - 1.4 * side) / 2, top = (h - side) / 2;
    ctx.fillStyle = meta.screen; ctx.beginPath(); ctx.roundRect(left, top, side, side, cell * 0.2); ctx.fill();
    [...frame].forEach((code, k) => {
      const thing = meta.things[parseInt(code, 36) - 1];
      if (!thing) return;
      const inset = thing.trail ? cell * 0.3 : gap, x = left + (k % 10) * cell + inset, y = top + Math.floor(k / 10) * cell + inset;
      ctx.fillStyle = thing.color; ctx.beginPath(); ctx.roundRect(x, y, cell - 2 * inset, cell - 2 * inset, cell * 0.12); ctx.fill();
    });
    ctx.textBaseline = "middle"; ctx.font = `${Math.max(9, cell * 0.34)}px system-ui, sans-serif`;
    meta.things.forEach((thing, k) => { // a key to the colours
      const x = left + side + cell * 0.5, y = top + cell * (0.5 + 0.6 * k), size = cell * 0.32;
      ctx.fillStyle = thing.color; ctx.beginPath(); ctx.roundRect(x, y - size / 2, size, size, size * 0.25); ctx.fill();
      ctx.fillStyle = c.muted; ctx.fillText(thing.name, x + size * 1.6, y);
    });
  },
}
