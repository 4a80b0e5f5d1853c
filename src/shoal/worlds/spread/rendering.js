{
  aspect: 1, smooth: true,
  draw(ctx, frame, { width: w, height: h, colors: c }) {
    const scale = Math.min(w, h) / 3;
    for (let k = 0; k < 6; k++) {
      ctx.fillStyle = k < 3 ? c.series[k] : c.ink;
      ctx.beginPath();
      ctx.arc(w / 2 + frame[2 * k] * scale, h / 2 - frame[2 * k + 1] * scale, (k < 3 ? 0.15 : 0.05) * scale, 0, 7);
      ctx.fill();
    }
  },
}
