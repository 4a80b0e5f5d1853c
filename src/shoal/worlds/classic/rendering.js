// cartpole
{
  aspect: 1.5, smooth: true,
  draw(ctx, [x, , angle], { width: w, height: h, colors: c, action }) {
    const scale = w / 5.6, ground = h * 0.74, pole = h * 0.46, cart = w / 2 + x * scale, unit = w / 600;
    ctx.strokeStyle = c.faint; ctx.lineWidth = 1.5 * unit;
    ctx.beginPath(); ctx.moveTo(0, ground); ctx.lineTo(w, ground);
    for (const edge of [-2.4, 2.4]) { ctx.moveTo(w / 2 + edge * scale, ground - 9 * unit); ctx.lineTo(w / 2 + edge * scale, ground + 9 * unit); }
    ctx.stroke();
    ctx.fillStyle = c.ink; ctx.beginPath(); ctx.roundRect(cart - 36 * unit, ground - 22 * unit, 72 * unit, 34 * unit, 6 * unit); ctx.fill();
    ctx.strokeStyle = c.series[1]; ctx.lineWidth = 11 * unit; ctx.lineCap = "round";
    ctx.beginPath(); ctx.moveTo(cart, ground - 18 * unit); ctx.lineTo(cart + pole * Math.sin(angle), ground - 18 * unit - pole * Math.cos(angle)); ctx.stroke();
    ctx.fillStyle = c.series[0]; ctx.beginPath(); ctx.arc(cart, ground - 18 * unit, 5 * unit, 0, 7); ctx.fill();
    const side = action === 1 ? 1 : -1, from = cart + side * 42 * unit;
    ctx.beginPath(); ctx.moveTo(from + side * 16 * unit, ground - 5 * unit); ctx.lineTo(from, ground - 13 * unit); ctx.lineTo(from, ground + 3 * unit); ctx.fill();
  },
}
// pendulum
{
  aspect: 1.5, smooth: true,
  draw(ctx, [up, side], { width: w, height: h, colors: c, action }) {
    const x = w / 2, y = h * 0.52, rod = h * 0.36, unit = w / 600, tip = [x - rod * side, y - rod * up], torque = Array.isArray(action) ? action[0] : action;
    ctx.strokeStyle = c.faint; ctx.lineWidth = 3 * unit; ctx.lineCap = "round";
    ctx.beginPath(); ctx.moveTo(x, y - rod - 24 * unit); ctx.lineTo(x, y - rod - 12 * unit); ctx.stroke();
    if (torque) {
      ctx.strokeStyle = c.series[0]; ctx.lineWidth = 4 * unit;
      ctx.beginPath(); ctx.arc(x, y, 34 * unit, -Math.PI / 2, -Math.PI / 2 - torque * 0.9, torque > 0); ctx.stroke();
    }
    ctx.strokeStyle = c.series[1]; ctx.lineWidth = 14 * unit;
    ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(...tip); ctx.stroke();
    ctx.fillStyle = c.series[0]; ctx.beginPath(); ctx.arc(...tip, 13 * unit, 0, 7); ctx.fill();
    ctx.fillStyle = c.ink; ctx.beginPath(); ctx.arc(x, y, 8 * unit, 0, 7); ctx.fill();
  },
}
// acrobot
{
  aspect: 1.5, smooth: true,
  draw(ctx, [cos1, sin1, cos2, sin2], { width: w, height: h, colors: c }) {
    const x = w / 2, y = h * 0.53, link = h * 0.2, unit = w / 600;
    const elbow = [x + link * sin1, y + link * cos1];
    const tip = [elbow[0] + link * (sin1 * cos2 + cos1 * sin2), elbow[1] + link * (cos1 * cos2 - sin1 * sin2)];
    ctx.lineCap = "round"; ctx.strokeStyle = c.faint; ctx.lineWidth = 1.5 * unit; ctx.setLineDash([6, 6]);
    ctx.beginPath(); ctx.moveTo(w * 0.12, y - link); ctx.lineTo(w * 0.88, y - link); ctx.stroke();
    ctx.setLineDash([]); ctx.lineWidth = 13 * unit;
    ctx.strokeStyle = c.ink; ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(...elbow); ctx.stroke();
    ctx.strokeStyle = c.series[1]; ctx.beginPath(); ctx.moveTo(...elbow); ctx.lineTo(...tip); ctx.stroke();
    ctx.fillStyle = c.series[0];
    for (const joint of [[x, y], elbow]) { ctx.beginPath(); ctx.arc(...joint, 6 * unit, 0, 7); ctx.fill(); }
  },
}
// mountain_car
{
  aspect: 1.5, smooth: true,
  draw(ctx, [position], { width: w, height: h, colors: c, meta }) {
    const unit = w / 600, across = (p) => ((p + 1.2) / 1.8) * w, height = (p) => h * (0.86 - 0.3 * (Math.sin(3 * p) + 1));
    ctx.fillStyle = c.track; ctx.beginPath(); ctx.moveTo(0, h);
    for (let p = -1.2; p <= 0.601; p += 0.02) ctx.lineTo(across(p), height(p));
    ctx.lineTo(w, h); ctx.fill();
    const flag = across(meta.goal), foot = height(meta.goal);
    ctx.strokeStyle = c.ink; ctx.lineWidth = 2 * unit; ctx.beginPath(); ctx.moveTo(flag, foot); ctx.lineTo(flag, foot - 46 * unit); ctx.stroke();
    ctx.fillStyle = c.series[1]; ctx.fillRect(flag, foot - 46 * unit, 24 * unit, 15 * unit);
    ctx.translate(across(position), height(position));
    ctx.rotate(Math.atan2(height(position + 0.01) - height(position - 0.01), across(0.02) - across(0)));
    ctx.fillStyle = c.series[0]; ctx.beginPath(); ctx.roundRect(-22 * unit, -25 * unit, 44 * unit, 18 * unit, 6 * unit); ctx.fill();
    ctx.fillStyle = c.ink;
    for (const wheel of [-13, 13]) { ctx.beginPath(); ctx.arc(wheel * unit, -7 * unit, 6 * unit, 0, 7); ctx.fill(); }
  },
}
