"use strict";
// The replay player: recorded lanes on canvases, one clock for all. A world draws with
// Shoal.renderers[name] = { aspect, smooth, draw(ctx, frame, view) }; view has width, height, colors, meta, t, frames, action, reward, total.

/** The theme's colours by name, for canvases. */
function themeColors() {
  const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(name).trim();
  const named = { series: [...Array(8).keys()].map((i) => value(`--c${i}`)) };
  for (const name of ["page", "surface", "line", "grid", "ink", "muted", "faint", "good", "bad", "track"]) named[name] = value(`--${name}`);
  return named;
}

/** Between two frames of numbers; anything else is held until the next frame. */
function between(a, b, share) {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return a;
  return a.map((value, i) => (typeof value === "number" ? value + (b[i] - value) * share : value));
}

class Player {
  constructor(block, card) {
    this.block = block;
    this.time = 0; this.speed = 1; this.playing = false; this.focus = -1; this.colors = themeColors();
    this.lanes = el("div", { className: "lanes" });
    this.play = el("button", { className: "play", type: "button", onclick: () => this.toggle() }, "▶ Play");
    this.scrub = el("input", { type: "range", min: 0, step: 1, ariaLabel: "time step", oninput: () => { this.pause(); this.time = +this.scrub.value; this.draw(); } });
    this.readout = el("output");
    const speeds = el("select", { ariaLabel: "speed", onchange: () => { this.speed = +speeds.value; } }, ...[0.25, 0.5, 1, 2, 4, 8].map((s) => el("option", { value: s, selected: s === 1 }, `${s}×`)));
    const which = el("select", { ariaLabel: "recording", onchange: () => this.open(+which.value) }, ...block.replays.map((r, i) => el("option", { value: i, selected: i === block.replays.length - 1 }, r.title)));
    card.classList.add("player");
    card.append(el("div", { className: "controls" }, this.play, el("button", { type: "button", title: "one step back", onclick: () => this.nudge(-1) }, "‹"), el("button", { type: "button", title: "one step on", onclick: () => this.nudge(1) }, "›"), this.scrub, this.readout, speeds, which), this.lanes);
    card.tabIndex = 0;
    card.addEventListener("keydown", (event) => {
      const action = { " ": () => this.toggle(), ArrowLeft: () => this.nudge(-1), ArrowRight: () => this.nudge(1) }[event.key];
      if (action && !["SELECT", "INPUT", "BUTTON"].includes(event.target.tagName)) { event.preventDefault(); action(); }
    });
    new ResizeObserver(() => this.layout()).observe(this.lanes);
    this.open(block.replays.length - 1);
    this.startWhenSeen();
  }

  open(index) {
    this.replay = this.block.replays[index];
    this.renderer = Shoal.renderers[this.replay.renderer] || Shoal.renderers.observations;
    this.last = Math.max(...this.replay.lanes.map((lane) => lane.frames.length)) - 1;
    this.totals = this.replay.lanes.map((lane) => { let sum = 0; return [0, ...lane.rewards.map((r) => (sum += r))]; });
    this.scrub.max = this.last; this.time = 0; this.focus = -1;
    this.lanes.replaceChildren(...this.replay.lanes.map((lane, i) => {
      const box = el("div", { className: "lane", onclick: () => { this.focus = this.focus === i ? -1 : i; this.layout(); } });
      box.append(el("figure", {}, el("canvas", { ariaLabel: `lane ${lane.lane}` }), el("figcaption", {}, el("span"), el("span"))));
      return box;
    }));
    this.layout();
  }

  /** Begin by itself once the lanes are on the screen, unless the reader asks for pages that keep still, or was faster. */
  startWhenSeen() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const watch = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watch.disconnect();
      if (this.time === 0 && !this.playing) this.start();
    }, { threshold: 0.2 });
    watch.observe(this.lanes);
  }

  layout() {
    const shown = this.focus < 0 ? this.replay.lanes.length : 1, wide = this.lanes.clientWidth;
    if (!wide) return;
    const fit = Math.max(1, Math.floor(wide / 340)), rows = Math.ceil(shown / fit), columns = Math.ceil(shown / rows); // rows of equal length
    this.lanes.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
    const width = Math.floor((wide - 10 * (columns - 1)) / columns) - 2, above = document.body.classList.contains("embedded") ? 120 : 300, tallest = Math.max(160, Math.floor((innerHeight - above) / rows)); // below the head of a page of their own
    const height = Math.min(Math.round(width / (this.renderer.aspect || 1.5)), 560, tallest);
    [...this.lanes.children].forEach((box, i) => {
      box.hidden = this.focus >= 0 && this.focus !== i;
      box.classList.toggle("focus", this.focus === i);
      const canvas = box.querySelector("canvas"), scale = devicePixelRatio || 1;
      canvas.width = width * scale; canvas.height = height * scale; canvas.style.height = height + "px";
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
      this.size = { width, height };
    });
    this.draw();
  }

  draw() {
    [...this.lanes.children].forEach((box, i) => {
      if (box.hidden) return;
      const lane = this.replay.lanes[i], end = lane.frames.length - 1, time = Math.min(this.time, end), t = Math.floor(time);
      const share = time - t, shown = share && this.renderer.smooth ? between(lane.frames[t], lane.frames[t + 1], share) : lane.frames[t];
      const ctx = box.querySelector("canvas").getContext("2d");
      ctx.clearRect(0, 0, this.size.width, this.size.height);
      ctx.save();
      this.renderer.draw(ctx, shown, { ...this.size, colors: this.colors, meta: this.replay.meta, t, frames: lane.frames, action: lane.actions[Math.min(t, lane.actions.length - 1)], reward: lane.rewards[t - 1] ?? 0, total: this.totals[i][t] });
      ctx.restore();
      const [left, right] = box.querySelectorAll("figcaption span");
      left.textContent = `lane ${lane.lane}` + (t >= end && end ? ` · ${lane.end}` : "");
      right.textContent = `return ${pretty(this.totals[i][t])}`;
    });
    this.scrub.value = Math.floor(this.time);
    this.readout.textContent = `step ${Math.floor(this.time)} / ${this.last}`;
  }

  toggle() { this.playing ? this.pause() : this.start(); }

  start() {
    if (this.time >= this.last) this.time = 0;
    this.playing = true; this.play.textContent = "❚❚ Pause";
    let before;
    const tick = (now) => {
      if (!this.playing) return;
      if (before !== undefined) this.time += ((now - before) / 1000) * this.replay.fps * this.speed;
      before = now;
      if (this.time >= this.last) { this.time = this.last; this.pause(); }
      this.draw();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() { this.playing = false; this.play.textContent = "▶ Play"; }

  nudge(by) { this.pause(); this.time = Math.max(0, Math.min(this.last, Math.floor(this.time) + by)); this.draw(); }
}

Shoal.blocks.replay = (block, card) => {
  if (!card.player) { card.player = new Player(block, card); return; }
  card.player.colors = themeColors();
  card.player.layout();
};
Shoal.blocks.replay.keeps = true; // redrawn in place, so that a change of theme does not stop the show

/** Where a world has no drawing of its own: every number of the frame as a bar on its own scale. */
Shoal.renderers.observations = {
  aspect: 1.6,
  smooth: true,
  draw(ctx, values, view) {
    if (!Array.isArray(values)) { ctx.fillStyle = view.colors.ink; ctx.fillText(JSON.stringify(values).slice(0, 200), 12, 40); return; }
    const n = values.length, top = 34, bottom = view.height - 14, middle = (top + bottom) / 2, slot = (view.width - 24) / n;
    if (view.frames.scale === undefined) view.frames.scale = values.map((_, k) => Math.max(1e-9, ...view.frames.map((f) => Math.abs(f[k]))));
    ctx.strokeStyle = view.colors.line; ctx.beginPath(); ctx.moveTo(12, middle); ctx.lineTo(view.width - 12, middle); ctx.stroke();
    values.forEach((value, k) => {
      const tall = (value / view.frames.scale[k]) * ((bottom - top) / 2);
      ctx.fillStyle = view.colors.series[k % 8];
      ctx.fillRect(12 + k * slot + slot * 0.15, Math.min(middle, middle - tall), slot * 0.7, Math.max(1, Math.abs(tall)));
    });
  },
};
