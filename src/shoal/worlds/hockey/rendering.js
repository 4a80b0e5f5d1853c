{
  aspect: 1.12, smooth: true,
  draw(ctx, frame, { width: w, height: h, colors: c, meta, t, frames }) {
    const [x1, y1, a1, x2, y2, a2, px, py, held1, held2, winner] = frame;
    const scale = Math.min(w / 9.4, h / 8.4), unit = scale / 60, middle = h - 3.9 * scale; // above the rink is room for a line
    ctx.translate(w / 2, middle); ctx.scale(scale, -scale); ctx.translate(-5, -4); // metres, y up
    const shape = (points, color) => {
      ctx.fillStyle = color; ctx.beginPath();
      points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.closePath(); ctx.fill();
    };
    const disc = (x, y, radius, color) => { ctx.fillStyle = color; ctx.beginPath(); ctx.arc(x, y, radius, 0, 7); ctx.fill(); };
    ctx.fillStyle = c.surface; ctx.fillRect(0.75, 0.5, 8.5, 7);
    ctx.strokeStyle = c.line; ctx.lineWidth = 0.04;
    ctx.beginPath(); ctx.moveTo(5, 0.67); ctx.lineTo(5, 7.33); ctx.stroke();
    ctx.beginPath(); ctx.arc(5, 4, 1, 0, 7); ctx.stroke();
    const scored = Math.round(winner);
    shape(meta.goals[0], scored === -1 ? c.bad : c.track); shape(meta.goals[1], scored === 1 ? c.bad : c.track);
    for (const wall of meta.walls) shape(wall, c.faint);
    for (let k = Math.max(0, t - 9); k <= t; k++) { // where the puck has been
      ctx.globalAlpha = 0.03 * (k - t + 10);
      disc(frames[k][6], frames[k][7], meta.radius, c.ink);
    }
    ctx.globalAlpha = 1;
    [[x1, y1, a1, held1], [x2, y2, a2, held2]].forEach(([x, y, angle, held], k) => {
      ctx.save(); ctx.translate(x, y); ctx.rotate(angle);
      shape(meta.rackets[k], c.series[k]);
      ctx.restore();
      if (held > 0.5) { // time left to shoot
        ctx.strokeStyle = c.series[k]; ctx.lineWidth = 0.06;
        ctx.beginPath(); ctx.arc(x, y, 0.62, Math.PI / 2, Math.PI / 2 + (Math.PI * 2 * held) / meta.hold); ctx.stroke();
      }
    });
    disc(px, py, meta.radius, c.ink);
    ctx.setTransform(ctx.getTransform().translate(5, 4).scale(1 / scale, -1 / scale).translate(-w / 2, -middle)); // pixels again
    ctx.font = `600 ${15 * unit}px system-ui, sans-serif`; ctx.textBaseline = "middle"; ctx.fillStyle = c.surface; // on the wall
    ctx.textAlign = "left"; ctx.fillText(meta.names[0], w / 2 - 4 * scale, middle - 3.5 * scale);
    ctx.textAlign = "right"; ctx.fillText(meta.names[1], w / 2 + 4 * scale, middle - 3.5 * scale);
    if (scored) {
      ctx.textAlign = "center"; ctx.fillStyle = c.series[scored === 1 ? 0 : 1]; ctx.font = `700 ${34 * unit}px system-ui, sans-serif`;
      ctx.fillText(`${meta.names[scored === 1 ? 0 : 1]} scores`, w / 2, middle - 1.9 * scale);
    }
  },
}
