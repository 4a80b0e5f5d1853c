{
  aspect: 1.3, smooth: false,
  draw(ctx, frame, { width: w, height: h, meta }) {
    const room = 30, side = Math.min(h - room - 8, (w - 16) / 1.42), cell = side / 10; // above is room for a line
    const left = (w - 1.42 * side) / 2, top = room + (h - room - 8 - side) / 2;
    const box = (x, y, width, height, color, round) => { ctx.fillStyle = color; ctx.beginPath(); ctx.roundRect(x, y, width, height, round); ctx.fill(); };
    box(left, top, 1.42 * side, side, meta.frame, cell * 0.2);
    box(left, top, side, side, meta.screen, cell * 0.2);
    [...frame].forEach((code, k) => {
      const thing = meta.things[parseInt(code, 36) - 1];
      if (!thing) return;
      const inset = cell * (thing.trail ? 0.3 : 0.06), size = cell - 2 * inset;
      box(left + (k % 10) * cell + inset, top + Math.floor(k / 10) * cell + inset, size, size, thing.color, cell * 0.12);
    });
    ctx.textBaseline = "middle"; ctx.font = `${Math.max(8, cell * 0.36)}px system-ui, sans-serif`;
    meta.things.forEach((thing, k) => { // a key to the colours
      const x = left + side + cell * 0.4, y = top + cell * (0.8 + 0.9 * k), size = cell * 0.36;
      box(x, y - size / 2, size, size, thing.color, size * 0.25);
      ctx.fillStyle = meta.text; ctx.fillText(thing.name, x + size * 1.6, y);
    });
  },
}
