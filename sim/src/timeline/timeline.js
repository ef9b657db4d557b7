// Draws the timeline: lanes of workers, bars of shards, marks for what happened. Everything comes from the page itself.
'use strict';
(() => {
  const errors = [];
  addEventListener('error', (e) => { errors.push(e.message); document.body.dataset.error = errors.join(' | '); });

  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($('data').textContent);
  const { workers, shards, spans, bars, marks } = data;
  const root = document.documentElement, body = document.body, view = $('view'), canvas = $('canvas'), overview = $('overview');
  const small = overview.getContext('2d');
  let ctx = canvas.getContext('2d');
  const END = Math.max(data.end, 1000), PAD = END * 0.012, LEAST = 1000;
  const RULE = 28, FLAG = 17, TICKS = 6, STRIP = 14, GAP = 7, ROW = 24, NEAR = 6;
  // From the least to the most important: what is drawn later lies on top.
  const KINDS = ['notice', 'row', 'checkpoint', 'processing', 'worker', 'stream', 'fence', 'release', 'take', 'steal', 'end', 'lost', 'trouble', 'fault', 'violation'];
  const rank = new Map(KINDS.map((kind, n) => [kind, n]));

  // ---- Time ----------------------------------------------------------------------------------------------------------

  // Above `head` lies the axis with the labels of violations and faults, below it the lanes.
  let from = -PAD, to = END + PAD, width = 0, height = 0, label = 96, head = RULE, flagRows = { violations: 0, faults: 0 };
  const x = (at) => label + (at - from) / (to - from) * (width - label);
  const time = (px) => from + (px - label) / (width - label) * (to - from);
  const seconds = (at) => (at / 1e6).toFixed(3) + ' s';
  const clock = (at) => data.epoch_ms === null ? '' : ' · ' + new Date(data.epoch_ms + at / 1000).toISOString().replace('T', ' ');

  function look(a, b) {
    const span = Math.min(Math.max(b - a, LEAST), END + 2 * PAD);
    const middle = (a + b) / 2;
    from = Math.min(Math.max(middle - span / 2, -PAD), END + PAD - span);
    to = from + span;
    changed();
  }
  const zoom = (factor, at = (from + to) / 2) => look(at - (at - from) * factor, at + (to - at) * factor);
  const pan = (part) => look(from + (to - from) * part, to + (to - from) * part);

  // ---- Order for quick drawing -----------------------------------------------------------------------------------------

  // The first of a sorted array for which `is` holds.
  function first(array, is) {
    let low = 0, high = array.length;
    while (low < high) { const mid = (low + high) >> 1; if (is(array[mid])) high = mid; else low = mid + 1; }
    return low;
  }
  const shardBars = shards.map((shard, n) => ({ n, ...shard })).filter((shard) => shard.born !== null);
  // A lane has rows; a row has bars by kind and marks, each in the order of time. Row -1 is the strip above the bars.
  const lanes = [];
  const makeLane = (name, rows, worker) => {
    const lane = { name, rows, worker, top: 0, spans: [], bars: [], marks: new Map() };
    for (let n = 0; n < rows; n++) lane.bars.push({ owned: [], processing: [], fenced: [], stream: [] });
    lanes.push(lane);
    return lane;
  };
  const stream = data.stream_rows > 0 ? makeLane('stream', data.stream_rows, null) : null;
  const laneOf = workers.map((worker, n) => makeLane(worker.name, worker.rows, n));
  for (const shard of shardBars) stream.bars[shard.row].stream.push({ from: shard.born, to: shard.closed ?? END, shard: shard.n, kind: 'stream', text: shard.name });
  for (const bar of bars) laneOf[bar.worker].bars[bar.row][bar.kind].push(bar);
  for (const span of spans) laneOf[span.worker].spans.push(span);
  const everywhere = [];
  marks.forEach((mark, n) => {
    mark.n = n;
    const lane = mark.worker !== null ? laneOf[mark.worker] : stream;
    if (mark.kind === 'violation' || !lane) { everywhere.push(mark); mark.lane = null; return; }
    mark.lane = lane;
    const own = mark.worker === null && mark.shard !== null && shards[mark.shard].born !== null && lane === stream && mark.kind === 'stream';
    mark.at_row = own ? shards[mark.shard].row : mark.kind === 'fault' || mark.kind === 'trouble' ? -1 : mark.row ?? -1;
    if (!lane.marks.has(mark.at_row)) lane.marks.set(mark.at_row, []);
    lane.marks.get(mark.at_row).push(mark);
  });
  const violations = marks.filter((mark) => mark.kind === 'violation'), faults = marks.filter((mark) => mark.kind === 'fault');

  // ---- Colours ---------------------------------------------------------------------------------------------------------

  const rich = globalThis.CSS && CSS.supports('color', 'oklch(0.5 0.1 20)');
  let dark = false, ink = {}, paints = [];
  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  function theme() {
    dark = root.dataset.theme ? root.dataset.theme === 'dark' : prefersDark.matches;
    const style = getComputedStyle(root);
    for (const name of ['ground', 'panel', 'lane', 'line', 'text', 'dim', 'faint', 'accent', 'fault', 'bad', 'bad-ground', 'fine', 'down']) ink[name] = style.getPropertyValue('--' + name).trim();
    // Golden steps round the wheel, without the reds that mean something else; three tones tell neighbours apart.
    paints = shards.map(({ number }) => {
      const hue = (45 + (number * 0.618034 % 1) * 315) % 360, tone = number % 3;
      const solid = dark ? [0.60, 0.54, 0.66][tone] : [0.74, 0.68, 0.80][tone], chroma = [0.115, 0.10, 0.09][tone];
      const make = (lightness, c, alpha) => rich ? `oklch(${lightness} ${c} ${hue} / ${alpha})` : `hsl(${hue} 45% ${lightness * 90}% / ${alpha})`;
      return { solid: make(solid, chroma, 1), pale: make(solid, chroma, dark ? 0.30 : 0.34), edge: make(dark ? solid + 0.12 : solid - 0.16, chroma, 1) };
    });
    hatches.clear();
    $('theme').textContent = dark ? 'Light' : 'Dark';
    $('theme').setAttribute('aria-pressed', String(dark));
    body.dataset.theme = dark ? 'dark' : 'light';
    drawLegend();
  }
  // Its marks are drawn as those of the timeline are.
  function drawLegend() {
    const of = ctx;
    for (const one of document.querySelectorAll('#legend canvas')) {
      ctx = one.getContext('2d');
      fit(one, ctx, 18, 16);
      drawMark({ kind: one.dataset.mark }, 9, 1, 14);
    }
    ctx = of;
  }
  const hatches = new Map();
  function hatch(colour, step) {
    const key = colour + step;
    if (!hatches.has(key)) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = step * 2;
      const c = tile.getContext('2d');
      c.strokeStyle = colour; c.lineWidth = 1.4; c.beginPath();
      for (let i = -2; i <= 4; i++) { c.moveTo(i * step, step * 2); c.lineTo((i + 2) * step, 0); }
      c.stroke();
      hatches.set(key, ctx.createPattern(tile, 'repeat'));
    }
    return hatches.get(key);
  }
  const colourOf = (mark) => mark.kind === 'violation' ? ink.bad : mark.kind === 'fault' || mark.kind === 'trouble' ? ink.fault
    : mark.shard !== null ? paints[mark.shard].edge : ink.dim;

  // ---- Filter ------------------------------------------------------------------------------------------------------------

  let shown = marks, terms = [], dim = null;
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const names = new Set([...workers, ...shards].map((one) => one.name.toLowerCase()));
  function parse(text) {
    return text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const not = word.length > 1 && word[0] === '-';
      if (not) word = word.slice(1);
      const [, field, value] = /^(worker|shard|kind):(.*)$/.exec(word) || [null, 'any', word];
      const whole = names.has(value) ? new RegExp(`(^|[^\\w-])${escaped(value)}($|[^\\w-])`) : null;
      const within = (text) => whole ? whole.test(text) : text.includes(value);
      const named = (one, numbered) => one !== undefined && (names.has(value) ? one.name.toLowerCase() === value
        : numbered && /^\d+$/.test(value) ? one.name.toLowerCase().endsWith('-' + value) : one.name.toLowerCase().includes(value));
      const worker = (item) => item.worker !== null && item.worker !== undefined && named(workers[item.worker], false);
      const shard = (item) => item.shard !== null && named(shards[item.shard], field === 'shard');
      const of = { worker, shard, kind: (item) => item.kind.startsWith(value), any: (item) => worker(item) || shard(item) || item.kind.startsWith(value) || within(item.text.toLowerCase()) }[field];
      // A word that names no worker and no shard says nothing about bars.
      const place = field === 'worker' ? worker : field === 'shard' ? shard
        : field === 'any' && (workers.some((one) => named(one, false)) || shards.some((one) => named(one, false))) ? (item) => worker(item) || shard(item) : null;
      return { not, of, place: not && field === 'any' ? null : place };
    });
  }
  function filter() {
    terms = parse($('filter').value);
    shown = terms.length ? marks.filter((mark) => terms.every((term) => term.of(mark) !== term.not)) : marks;
    const places = terms.filter((term) => term.place);
    dim = places.length ? (item) => !places.every((term) => term.place(item) !== term.not) : null;
    const kept = terms.length ? new Set(shown) : null;
    for (const mark of marks) mark.hidden = kept !== null && !kept.has(mark);
    $('filter').classList.toggle('none', shown.length === 0 && marks.length > 0);
    changed();
  }

  // ---- Layout ------------------------------------------------------------------------------------------------------------

  let rowHeight = 16, content = 0;
  function layout() {
    width = view.clientWidth; height = view.clientHeight;
    ctx.font = font(12, 600);
    label = Math.min(Math.max(80, 26 + Math.max(...lanes.map((lane) => ctx.measureText(lane.name).width), 0)), width / 4);
    // The rows of labels do not depend on what is in view: nothing jumps while one moves through the time.
    const most = height < 300 ? 1 : height < 450 ? 2 : 3;
    flagRows = { violations: Math.min(violations.length, most), faults: Math.min(faults.length, most) };
    head = RULE + (flagRows.violations + flagRows.faults) * FLAG + (flagRows.violations + flagRows.faults ? TICKS : 0);
    const rows = lanes.reduce((sum, lane) => sum + Math.max(lane.rows, 1), 0);
    const room = height - head - lanes.length * (STRIP + GAP) - 10;
    rowHeight = Math.min(Math.max(Math.floor(room / Math.max(rows, 1)), 7), 24);
    let y = head + 4;
    for (const lane of lanes) {
      lane.top = y;
      lane.height = STRIP + Math.max(lane.rows, 1) * rowHeight + 3;
      y += lane.height + GAP;
    }
    content = y + 6;
    $('tall').style.height = Math.max(0, content - height) + 'px';
    fit(canvas, ctx, width, height);
    fit(overview, small, overview.clientWidth, 34);
  }
  function fit(canvas, context, w, h) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(w * ratio)); canvas.height = Math.max(1, Math.round(h * ratio));
    if (canvas !== overview) { canvas.style.width = w + 'px'; canvas.style.height = h + 'px'; }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  const font = (size, weight = 400) => `${weight} ${size}px system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif`;

  // ---- Drawing -----------------------------------------------------------------------------------------------------------

  let hover = null, chosen = null, queued = false, drawn = { bars: 0, marks: 0 };
  function changed() { if (!queued) { queued = true; requestAnimationFrame(frame); } }
  function frame() {
    queued = false;
    draw();
    list();
    body.dataset.lanes = String(workers.length);
    body.dataset.bars = String(drawn.bars);
    body.dataset.marks = String(drawn.marks);
    body.dataset.events = String(marks.length);
    body.dataset.listed = String(inView.length);
  }

  const STEPS = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 3e7, 6e7, 12e7, 3e8, 6e8, 18e8, 36e8, 72e8, 216e8, 864e8];
  function ticks() {
    const most = Math.max(2, (width - label) / 90);
    const step = STEPS.find((step) => (to - from) / step <= most) || Math.pow(10, Math.ceil(Math.log10((to - from) / most)));
    const all = [];
    for (let at = Math.max(0, Math.ceil(from / step) * step); at <= Math.min(to, END); at += step) all.push(at);
    return { step, all };
  }
  function tickText(at, step) {
    const s = at / 1e6;
    if (step < 1e6) return s.toFixed(step >= 1e5 ? 1 : step >= 1e4 ? 2 : 3) + ' s';
    if (END < 18e7) return s.toFixed(0) + ' s';
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60, two = (n) => String(n).padStart(2, '0');
    return h > 0 || END >= 36e8 ? `${h}:${two(m)}:${two(Math.floor(s % 60))}` : `${m}:${two(Math.floor(s % 60))}`;
  }

  function draw() {
    drawn = { bars: 0, marks: 0 };
    const scroll = view.scrollTop, { step, all } = ticks();
    ctx.fillStyle = ink.ground; ctx.fillRect(0, 0, width, height);
    const inSight = lanes.filter((lane) => lane.top + lane.height - scroll >= head && lane.top - scroll <= height);
    ctx.save();
    ctx.beginPath(); ctx.rect(label, 0, width - label, height); ctx.clip();
    for (const lane of inSight) drawGround(lane, lane.top - scroll);
    ctx.fillStyle = ink.line; ctx.globalAlpha = 0.6;
    for (const at of all) ctx.fillRect(Math.round(x(at)), head, 1, height);
    ctx.globalAlpha = 1;
    for (const lane of inSight) drawBars(lane, lane.top - scroll);
    if (stream && inSight.includes(stream)) drawLineage(stream.top - scroll);
    for (const lane of inSight) drawMarks(lane, lane.top - scroll);
    drawViolations();
    if (hover) { ctx.fillStyle = ink.faint; ctx.globalAlpha = 0.5; ctx.fillRect(Math.round(x(hover.at)), head, 1, height); ctx.globalAlpha = 1; }
    drawChosen(scroll);
    ctx.restore();
    for (const lane of inSight) drawLabel(lane, lane.top - scroll);
    drawAxis(all, step);
    drawOverview();
  }

  function drawGround(lane, y) {
    if (lane.worker === null) { ctx.fillStyle = ink.lane; ctx.fillRect(x(0), y, x(END) - x(0), lane.height); return; }
    ctx.fillStyle = ink.down; ctx.globalAlpha = 0.8; ctx.fillRect(x(0), y, x(END) - x(0), lane.height); ctx.globalAlpha = 1;
    for (const span of lane.spans) {
      if (span.to < from || span.from > to) continue;
      const left = x(span.from), wide = Math.max(x(span.to) - left, 0.6);
      ctx.fillStyle = ink.lane;
      if (span.kind === 'up') ctx.fillRect(left, y, wide, lane.height);
    }
    for (const span of lane.spans) {
      if (span.kind !== 'paused' || span.to < from || span.from > to) continue;
      ctx.fillStyle = hatch(ink.line, 4);
      ctx.fillRect(x(span.from), y, Math.max(x(span.to) - x(span.from), 1), lane.height);
    }
  }

  // Bars narrower than a pixel that fall on one already drawn are left out.
  function drawBars(lane, y) {
    for (let row = 0; row < lane.rows; row++) {
      const top = y + STRIP + row * rowHeight;
      if (top > height || top + rowHeight < head) continue;
      for (const kind of ['stream', 'owned', 'processing', 'fenced']) {
        const list = lane.bars[row][kind];
        let last = -Infinity;
        for (let n = first(list, (bar) => bar.to >= from); n < list.length && list[n].from <= to; n++) {
          const bar = list[n], left = Math.max(x(bar.from), label - 4), right = Math.min(x(bar.to), width + 4);
          if (right - left < 1 && Math.floor(left) === last) continue;
          last = Math.floor(left);
          drawBar(bar, left, top + 1, Math.max(right - left, 1), rowHeight - 2);
        }
      }
    }
  }
  function drawBar(bar, left, top, wide, high) {
    drawn.bars++;
    const paint = paints[bar.shard], round = wide > 5 ? Math.min(3, high / 3) : 0;
    ctx.globalAlpha = dim && dim(bar) ? 0.13 : 1;
    if (bar.kind === 'fenced') ctx.fillStyle = hatch(paint.edge, 4);
    else ctx.fillStyle = bar.kind === 'processing' ? paint.solid : paint.pale;
    const inset = bar.kind === 'processing' && high > 8 ? 1 : 0;
    ctx.beginPath();
    ctx.roundRect(left, top + inset, wide, high - 2 * inset, round);
    ctx.fill();
    if (bar.kind === 'owned' || bar.kind === 'stream') { ctx.fillStyle = paint.edge; ctx.fillRect(left, top, Math.min(2, wide), high); }
    // Text once: on the processing bar if there is one, and always on the stream's.
    if (high >= 10 && wide > 34 && bar.kind !== 'fenced' && (bar.kind !== 'owned' || wide > 60)) {
      const text = shards[bar.shard].name;
      ctx.font = font(Math.min(11, high - 2), 500);
      const length = ctx.measureText(text).width;
      const visible = Math.max(left, label);
      if (length + 18 < left + wide - visible && (bar.kind !== 'owned' || !covered(bar, visible, length + 14))) {
        ctx.fillStyle = ink.text;
        if (bar.kind === 'owned') ctx.globalAlpha *= 0.75;
        ctx.textBaseline = 'middle'; ctx.textAlign = 'left';
        ctx.fillText(text, visible + 9, top + high / 2 + 0.5);
      }
    }
    ctx.globalAlpha = 1;
  }
  // Whether a processing bar of the same row will lie where the text would.
  function covered(bar, left, length) {
    const list = laneOf[bar.worker].bars[bar.row].processing;
    const n = first(list, (other) => x(other.to) >= left);
    return n < list.length && x(list[n].from) <= left + length;
  }

  function drawLineage(y) {
    ctx.lineWidth = 1.3;
    for (const child of shardBars) {
      if (child.born < from || child.born > to) continue;
      for (const n of child.parents) {
        const parent = shards[n];
        if (parent.born === null) continue;
        const high = (shard) => y + STRIP + shard.row * rowHeight + rowHeight / 2;
        const a = x(parent.closed ?? child.born), b = x(child.born);
        ctx.strokeStyle = paints[child.n].edge;
        ctx.beginPath(); ctx.moveTo(a - 6, high(parent)); ctx.bezierCurveTo(a + 3, high(parent), b - 5, high(child), b + 2, high(child)); ctx.stroke();
      }
    }
  }

  function place(mark, y) {
    return mark.at_row < 0 ? { top: y + 1, high: STRIP - 2 } : { top: y + STRIP + mark.at_row * rowHeight + 1, high: rowHeight - 2 };
  }
  function drawMarks(lane, y) {
    for (const list of lane.marks.values()) {
      const { top, high } = place(list[0], y);
      if (top > height || top + high < head) continue;
      const last = new Int32Array(KINDS.length).fill(-9999);
      for (let n = first(list, (mark) => mark.at >= from); n < list.length && list[n].at <= to; n++) {
        const mark = list[n];
        if (mark.hidden) continue;
        const px = x(mark.at), kind = rank.get(mark.kind), apart = mark.kind === 'checkpoint' ? 1 : 3;
        if (Math.abs(Math.floor(px) - last[kind]) < apart) continue;
        const crowded = px - last[kind] < 9;
        last[kind] = Math.floor(px);
        // Faults that follow each other closely become a line of ticks: there are many, and they are seldom the point.
        if (mark.kind === 'fault' && (crowded || close(list, n, px))) { drawn.marks++; ctx.fillStyle = ink.fault; ctx.globalAlpha = 0.5; ctx.fillRect(px - 0.75, top + high - 5, 1.5, 4); ctx.globalAlpha = 1; } else drawMark(mark, px, top, high);
      }
    }
  }
  function close(list, n, px) {
    for (let next = n + 1; next < list.length && next < n + 6; next++) if (list[next].kind === 'fault' && !list[next].hidden) return x(list[next].at) - px < 9;
    return false;
  }
  function drawMark(mark, px, top, high) {
    drawn.marks++;
    const middle = top + high / 2, r = Math.max(2, Math.min(4, high / 2 - 1));
    ctx.fillStyle = ink.text;
    switch (mark.kind) {
      case 'checkpoint': ctx.globalAlpha = 0.55; ctx.fillRect(px - 0.5, top + high * 0.55, 1, high * 0.45); break;
      case 'row': case 'notice': case 'processing': ctx.fillStyle = ink.faint; dot(px, middle, Math.min(1.6, r)); break;
      case 'worker': ctx.fillStyle = ink.dim; dot(px, middle, r - 0.5); break;
      case 'stream': ctx.fillStyle = ink.text; ctx.globalAlpha = 0.7; dot(px, middle, 2); break;
      case 'trouble': ctx.fillStyle = ink.fault; ctx.globalAlpha = 0.75; dot(px, middle, 1.8); break;
      case 'fault': ctx.fillStyle = ink.fault; shape([[px, middle - r], [px + r, middle], [px, middle + r], [px - r, middle]]); break;
      case 'take': shape([[px - r * 0.4, middle - r], [px + r, middle], [px - r * 0.4, middle + r]]); break;
      case 'steal': shape([[px - r, middle - r], [px, middle], [px - r, middle + r]]); shape([[px, middle - r], [px + r, middle], [px, middle + r]]); break;
      case 'release': shape([[px + r * 0.4, middle - r], [px - r, middle], [px + r * 0.4, middle + r]]); break;
      case 'end': ctx.fillRect(px - 1, top, 2, high); break;
      case 'fence': ctx.fillStyle = ink.fault; ctx.fillRect(px - 1, top, 2, high); break;
      case 'lost': ctx.strokeStyle = ink.text; ctx.lineWidth = 1.6; ctx.beginPath(); ctx.moveTo(px - r * .8, middle - r * .8); ctx.lineTo(px + r * .8, middle + r * .8); ctx.moveTo(px + r * .8, middle - r * .8); ctx.lineTo(px - r * .8, middle + r * .8); ctx.stroke(); break;
      default: dot(px, middle, r);
    }
    ctx.globalAlpha = 1;
  }
  function dot(px, py, r) { ctx.beginPath(); ctx.arc(px, py, r, 0, 7); ctx.fill(); }
  function shape(points) {
    ctx.beginPath();
    points.forEach(([px, py], n) => n ? ctx.lineTo(px, py) : ctx.moveTo(px, py));
    ctx.closePath(); ctx.fill();
  }
  function drawViolations() {
    for (const mark of everywhere) {
      if (mark.hidden || mark.at < from || mark.at > to) continue;
      drawn.marks++;
      const px = Math.round(x(mark.at));
      if (mark.kind !== 'violation') { ctx.fillStyle = colourOf(mark); dot(px, head + 3, 2); continue; }
      ctx.fillStyle = ink.bad; ctx.globalAlpha = 0.12; ctx.fillRect(px - 4, head, 9, height);
      ctx.globalAlpha = 1; ctx.fillRect(px, head, 1.5, height);
    }
  }
  function drawChosen(scroll) {
    if (!chosen || chosen.kind === 'violation' || chosen.at < from || chosen.at > to) return;
    const px = x(chosen.at);
    ctx.fillStyle = ink.accent; ctx.globalAlpha = 0.7; ctx.fillRect(Math.round(px), head, 1, height); ctx.globalAlpha = 1;
    if (!chosen.lane) return;
    const { top, high } = place(chosen, chosen.lane.top - scroll);
    ctx.strokeStyle = ink.accent; ctx.lineWidth = 2; ctx.beginPath(); ctx.arc(px, top + high / 2, 8, 0, 7); ctx.stroke();
  }
  function drawLabel(lane, y) {
    ctx.fillStyle = ink.ground; ctx.fillRect(0, y - GAP, label - 1, lane.height + GAP);
    ctx.fillStyle = lane.worker === null ? ink.dim : ink.text;
    ctx.font = font(12, 600); ctx.textAlign = 'left'; ctx.textBaseline = 'middle';
    const middle = Math.min(Math.max(y + lane.height / 2, head + 12), Math.max(y + lane.height - 10, head + 4));
    ctx.fillText(lane.name, 14, middle, label - 22);
  }
  function drawAxis(all, step) {
    ctx.fillStyle = ink.panel; ctx.fillRect(0, 0, width, head - 1);
    ctx.fillStyle = ink.line; ctx.fillRect(0, head - 1, width, 1);
    ctx.font = font(11); ctx.textBaseline = 'middle'; ctx.textAlign = 'center';
    const boxes = [];
    for (const at of all) {
      const px = x(at);
      if (px < label - 1) continue;
      const text = tickText(at, step), half = ctx.measureText(text).width / 2, middle = Math.min(Math.max(px, label + 12), width - 4 - half);
      ctx.fillStyle = ink.line; ctx.fillRect(Math.round(px), RULE - 6, 1, 5);
      ctx.fillStyle = ink.dim; ctx.fillText(text, middle, RULE / 2 - 2);
      boxes.push([middle - half, RULE / 2 - 8, 2 * half, 12]);
    }
    ctx.textAlign = 'left';
    boxes.push(...drawFlags().map((flag) => [flag.left, flag.top, flag.width, FLAG - 2]));
    // For tests: everything above the lanes that is written, as left,top,width,height.
    body.dataset.boxes = boxes.map((box) => box.map((n) => n.toFixed(1)).join()).join(';');
    body.dataset.flagged = String(flags.reduce((sum, flag) => sum + flag.marks.length, 0));
  }

  // ---- Labels of violations and faults -----------------------------------------------------------------------------------

  let flags = [];
  const nameOf = (mark) => mark.text.split(mark.kind === 'violation' ? ':' : ' (')[0].replace(/^request \d+ to /, '');
  function drawFlags() {
    ctx.font = font(11, 600);
    const lay = (kind, list, rows, many) => rows === 0 ? [] : layLabels(list.filter((mark) => !mark.hidden && mark.at >= from && mark.at <= to),
      { left: label, right: width - 4, rows, px: (mark) => x(mark.at), name: nameOf, many, measure: (text) => ctx.measureText(text).width, widest: kind === 'violation' ? 190 : 132 }).map((flag) => ({ kind, ...flag }));
    const upper = lay('violation', violations, flagRows.violations, (n) => n + ' violations'), lower = lay('fault', faults, flagRows.faults, (n) => n + ' faults');
    flags = [...upper, ...lower];
    const bottom = head - TICKS;
    for (const flag of flags) flag.top = bottom - (flag.row + 1 + (flag.kind === 'violation' ? flagRows.faults : 0)) * FLAG;
    // Lines first: a label that lies on the way of another one's line covers it.
    for (const flag of flags) {
      ctx.fillStyle = flag.kind === 'violation' ? ink.bad : ink.fault;
      ctx.globalAlpha = flag.kind === 'violation' ? 1 : 0.55; ctx.fillRect(flag.px, flag.top + 2, 1, head - flag.top - 3); ctx.globalAlpha = 1;
      for (const mark of flag.marks) ctx.fillRect(Math.round(x(mark.at)), bottom + 1, 1, TICKS - 2);
    }
    for (const flag of flags) {
      const bad = flag.kind === 'violation', on = chosen && flag.marks.includes(chosen);
      ctx.fillStyle = bad ? ink.bad : ink.panel; ctx.strokeStyle = ink.fault; ctx.lineWidth = on ? 2 : 1;
      ctx.beginPath(); ctx.roundRect(flag.left + 0.5, flag.top + 0.5, flag.width - 1, FLAG - 3, 3); ctx.fill();
      if (!bad) { ctx.globalAlpha = on ? 1 : 0.6; ctx.stroke(); ctx.globalAlpha = 1; }
      ctx.fillStyle = bad ? (dark ? '#1b0508' : '#fff') : ink.fault;
      ctx.fillText(flag.text, flag.left + 6, flag.top + FLAG / 2 - 0.5);
    }
    ctx.font = font(11); ctx.fillStyle = ink.dim;
    const name = (text, up, rows) => { if (rows) ctx.fillText(text, 14, bottom - (up + rows / 2) * FLAG - 0.5, label - 18); };
    name('violations', flagRows.faults, flagRows.violations);
    name('faults', 0, flagRows.faults);
    return flags;
  }
  const flagAt = (px, py) => flags.find((flag) => px >= flag.left && px <= flag.left + flag.width && py >= flag.top && py <= flag.top + FLAG);
  // What a label is of: its mark, or a time with several.
  function ofFlag(flag) {
    if (!flag) return null;
    if (flag.marks.length === 1) return { mark: flag.marks[0] };
    const count = new Map();
    for (const mark of flag.marks) { const name = nameOf(mark).replace(/^[^:]*: /, ''); count.set(name, (count.get(name) || 0) + 1); }
    const text = [...count].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${n} × ${name}`).join(', ');
    return { bar: { from: flag.marks[0].at, to: flag.marks.at(-1).at, kind: flag.kind + 's', text } };
  }

  // ---- The overview --------------------------------------------------------------------------------------------------------

  let density = null;
  function drawOverview() {
    const w = overview.clientWidth, at = (t) => label + (t + PAD) / (END + 2 * PAD) * (w - label);
    if (!density || density.of !== shown || density.w !== w) {
      const count = new Float32Array(Math.max(1, Math.ceil(w / 2))), ill = new Float32Array(count.length);
      for (const mark of shown) { const n = Math.floor(at(mark.at) / 2); count[n]++; if (mark.kind === 'fault' || mark.kind === 'trouble') ill[n]++; }
      density = { of: shown, w, count, ill, most: Math.max(1, count.reduce((a, b) => Math.max(a, b), 0)) };
    }
    small.fillStyle = ink.panel; small.fillRect(0, 0, w, 34);
    const tall = (n) => n ? Math.max(2, Math.log1p(n) / Math.log1p(density.most) * 24) : 0;
    density.count.forEach((n, i) => {
      small.fillStyle = ink.faint; small.fillRect(i * 2, 30 - tall(n), 1.4, tall(n));
      small.fillStyle = ink.fault; small.fillRect(i * 2, 30 - tall(density.ill[i]), 1.4, tall(density.ill[i]));
    });
    for (const mark of violations) if (!mark.hidden) { small.fillStyle = ink.bad; small.fillRect(at(mark.at) - 1, 3, 2, 27); }
    small.fillStyle = ink.ground; small.globalAlpha = 0.72;
    small.fillRect(label, 0, at(from) - label, 34); small.fillRect(at(to), 0, w - at(to), 34); small.globalAlpha = 1;
    small.strokeStyle = ink.accent; small.lineWidth = 1.5; small.beginPath();
    small.roundRect(Math.max(at(from), label) + 1, 1.5, Math.max(3, at(to) - at(from) - 2), 30, 4); small.stroke();
    small.fillStyle = ink.dim; small.font = font(11); small.textBaseline = 'middle'; small.fillText('overview', 14, 17);
  }

  // ---- The list of events ----------------------------------------------------------------------------------------------

  let inView = [], listOf = null;
  function list() {
    const key = `${from} ${to} ${shown.length}`;
    if (listOf !== key) {
      listOf = key;
      inView = shown.slice(first(shown, (mark) => mark.at >= from), first(shown, (mark) => mark.at > to));
      const n = (count) => count.toLocaleString('en');
      $('count').textContent = inView.length === marks.length ? `${n(marks.length)} events` : `${n(inView.length)} of ${n(marks.length)} events in view`;
      $('rows').style.height = inView.length * ROW + 'px';
      const place = chosen ? inView.indexOf(chosen) : -1;
      if (place >= 0) reveal(place); else $('list').scrollTop = 0;
    }
    rows();
  }
  function reveal(place) {
    const list = $('list'), top = place * ROW;
    if (top < list.scrollTop || top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - list.clientHeight / 2);
  }
  function rows() {
    const list = $('list'), holder = $('rows');
    const begin = Math.max(0, Math.floor(list.scrollTop / ROW) - 3), end = Math.min(inView.length, begin + Math.ceil(list.clientHeight / ROW) + 8);
    const made = document.createDocumentFragment();
    for (let n = begin; n < end; n++) {
      const mark = inView[n], row = document.createElement('div'), when = document.createElement('time'), spot = document.createElement('span'), say = document.createElement('span');
      row.className = `row ${mark.kind === 'row' ? 'row-change' : mark.kind}${mark === chosen ? ' on' : ''}${hover && hover.mark === mark ? ' near' : ''}`;
      row.id = 'e' + mark.n; row.style.top = n * ROW + 'px'; row.title = mark.text;
      row.setAttribute('role', 'option'); row.setAttribute('aria-selected', String(mark === chosen));
      row.setAttribute('aria-setsize', String(inView.length)); row.setAttribute('aria-posinset', String(n + 1));
      when.textContent = (mark.at / 1e6).toFixed(3);
      spot.className = 'dot'; spot.style.background = colourOf(mark);
      say.className = 'say'; say.textContent = mark.text;
      row.append(when, spot, say);
      made.append(row);
    }
    holder.replaceChildren(made);
    if (chosen && inView.includes(chosen)) list.setAttribute('aria-activedescendant', 'e' + chosen.n); else list.removeAttribute('aria-activedescendant');
  }
  function describe(item, into) {
    const when = document.createElement('p'), what = document.createElement('p');
    when.className = 'when';
    when.textContent = 'at' in item ? `${seconds(item.at)} · ${item.kind}${clock(item.at)}` : `${seconds(item.from)} to ${seconds(item.to)} · ${item.kind} for ${seconds(item.to - item.from)}`;
    what.textContent = item.text;
    into.replaceChildren(when, what);
  }
  function choose(mark) {
    chosen = mark;
    $('detail').hidden = !mark;
    if (mark) {
      describe(mark, $('detail'));
      if (mark.at < from || mark.at > to) look(mark.at - (to - from) / 2, mark.at + (to - from) / 2);
      if (mark.lane) {
        const { top, high } = place(mark, mark.lane.top - view.scrollTop);
        if (top < head || top + high > height) view.scrollTop += top - height / 2;
      }
      const n = inView.indexOf(mark);
      if (n >= 0) reveal(n);
    }
    changed();
  }
  function step(by) {
    if (!shown.length) return;
    let n = chosen ? shown.indexOf(chosen) : -1;
    if (n < 0) n = by > 0 ? first(shown, (mark) => mark.at >= from) - 1 : first(shown, (mark) => mark.at > to);
    choose(shown[Math.min(Math.max(n + by, 0), shown.length - 1)]);
  }
  function worst() {
    if (!violations.length) return;
    const next = violations.find((mark) => chosen && mark.n > chosen.n) || violations[0];
    const span = Math.min(to - from, END / 8);
    look(next.at - span * 0.7, next.at + span * 0.3);
    choose(next);
  }

  // ---- What lies under the pointer ---------------------------------------------------------------------------------------

  function under(px, py) {
    if (px < label || py < head) return py < head ? ofFlag(flagAt(px, py)) : null;
    for (const mark of everywhere) if (!mark.hidden && Math.abs(x(mark.at) - px) <= 3) return { mark };
    const y = py + view.scrollTop, lane = lanes.find((lane) => y >= lane.top && y < lane.top + lane.height);
    if (!lane) return null;
    const row = y < lane.top + STRIP ? -1 : Math.floor((y - lane.top - STRIP) / rowHeight), at = time(px), reach = time(px + NEAR) - at;
    const list = lane.marks.get(row) || [];
    let best = null;
    for (let n = first(list, (mark) => mark.at >= at - reach); n < list.length && list[n].at <= at + reach; n++) {
      const mark = list[n];
      if (mark.hidden) continue;
      const far = Math.abs(mark.at - at) / reach - rank.get(mark.kind) / 20;
      if (!best || far < best.far) best = { mark, far };
    }
    if (best) return { mark: best.mark };
    const slot = lane.bars[row];
    for (const kind of slot ? ['fenced', 'processing', 'owned', 'stream'] : []) {
      const bar = slot[kind][first(slot[kind], (bar) => bar.to >= at)];
      if (bar && bar.from <= at) return { bar };
    }
    const span = lane.spans.filter((span) => span.from <= at && at <= span.to).at(-1);
    return { bar: span || (lane.worker === null ? null : { from: at, to: at, kind: 'down', text: `${lane.name} is down` }) };
  }
  function point(e) {
    const box = view.getBoundingClientRect(), px = e.clientX - box.left, py = e.clientY - box.top;
    const found = under(px, py);
    hover = px >= label && py >= 0 ? { at: time(px), mark: found && found.mark } : null;
    const tip = $('tip'), item = found && (found.mark || found.bar);
    tip.hidden = !item;
    if (item) {
      describe(item, tip);
      const stage = view.parentElement.getBoundingClientRect();
      const left = Math.min(e.clientX - stage.left + 14, stage.width - tip.offsetWidth - 8), below = e.clientY - stage.top + 18;
      tip.style.left = Math.max(4, left) + 'px';
      tip.style.top = (below + tip.offsetHeight > stage.height ? Math.max(0, e.clientY - stage.top - tip.offsetHeight - 10) : below) + 'px';
    }
    changed();
    return found;
  }

  // ---- Hands -------------------------------------------------------------------------------------------------------------

  const pointers = new Map();
  let moved = 0;
  view.addEventListener('pointerdown', (e) => {
    if (e.button !== 0 || e.offsetX >= view.clientWidth) return;
    pointers.set(e.pointerId, { x: e.clientX, y: e.clientY }); moved = 0;
    view.setPointerCapture(e.pointerId); view.classList.add('dragging');
  });
  view.addEventListener('pointermove', (e) => {
    const held = pointers.get(e.pointerId);
    if (!held) { point(e); return; }
    const per = (to - from) / (width - label), dx = e.clientX - held.x, dy = e.clientY - held.y;
    moved += Math.abs(dx) + Math.abs(dy);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== e.pointerId)[1];
      const before = Math.abs(held.x - other.x), now = Math.abs(e.clientX - other.x);
      if (before > 8 && now > 8) zoom(before / now, time((e.clientX + other.x) / 2 - view.getBoundingClientRect().left));
    } else if (moved > 3) {
      $('tip').hidden = true;
      look(from - dx * per, to - dx * per);
      view.scrollTop -= dy;
    }
    held.x = e.clientX; held.y = e.clientY;
  });
  const release = (e) => {
    if (!pointers.delete(e.pointerId)) return;
    view.classList.toggle('dragging', pointers.size > 0);
    if (e.type === 'pointerup' && moved <= 3) { const found = point(e), times = found && found.bar;
      choose(found && found.mark ? found.mark : null);
      // A label of several is opened: it is as wide as the view then.
      if (times && ['faults', 'violations'].includes(times.kind)) { const more = Math.max((times.to - times.from) * 0.1, LEAST); look(times.from - more, times.to + more); }
    }
  };
  view.addEventListener('pointerup', release);
  view.addEventListener('pointercancel', release);
  view.addEventListener('pointerleave', () => { hover = null; $('tip').hidden = true; changed(); });
  view.addEventListener('wheel', (e) => {
    const px = e.clientX - view.getBoundingClientRect().left;
    if (px < label) return;
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? height : 1;
    const across = e.shiftKey ? e.deltaY || e.deltaX : e.deltaX;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(across * unit / (width - label));
    else zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * unit * 0.0022))), time(px));
    point(e);
  }, { passive: false });
  view.addEventListener('dblclick', (e) => zoom(0.4, time(e.clientX - view.getBoundingClientRect().left)));
  view.addEventListener('scroll', changed);
  view.addEventListener('keydown', (e) => {
    const jump = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: -0.8, PageDown: 0.8 }[e.key];
    if (jump) pan(e.shiftKey ? jump * 4 : jump);
    else if (e.key === 'Home') look(-PAD, to - from - PAD);
    else if (e.key === 'End') look(END + PAD - (to - from), END + PAD);
    else return;
    e.preventDefault();
  });

  const sweep = (e) => {
    const w = overview.clientWidth, part = (e.offsetX - label) / (w - label), middle = -PAD + part * (END + 2 * PAD);
    look(middle - (to - from) / 2, middle + (to - from) / 2);
  };
  overview.addEventListener('pointerdown', (e) => { overview.setPointerCapture(e.pointerId); sweep(e); });
  overview.addEventListener('pointermove', (e) => { if (e.buttons) sweep(e); });

  $('rows').addEventListener('click', (e) => {
    const row = e.target.closest('.row');
    if (row) choose(marks[Number(row.id.slice(1))]);
  });
  $('list').addEventListener('scroll', () => rows());
  $('list').addEventListener('keydown', (e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') step(e.key === 'ArrowDown' ? 1 : -1);
    else if (e.key === 'Home' && inView.length) choose(inView[0]);
    else if (e.key === 'End' && inView.length) choose(inView.at(-1));
    else return;
    e.preventDefault();
  });

  function toggleTheme() { root.dataset.theme = dark ? 'light' : 'dark'; theme(); changed(); }
  const fold = (button, what) => () => {
    $(what).hidden = !$(what).hidden;
    $(button).setAttribute('aria-expanded', String(!$(what).hidden));
  };
  const toggleLegend = fold('meaning', 'legend'), toggleHelp = fold('help', 'keys');
  const all = () => look(-PAD, END + PAD);
  $('in').onclick = () => zoom(0.6);
  $('out').onclick = () => zoom(1 / 0.6);
  $('fit').onclick = all;
  $('worst').onclick = worst;
  $('theme').onclick = toggleTheme;
  $('meaning').onclick = toggleLegend;
  $('help').onclick = toggleHelp;
  $('filter').addEventListener('input', filter);
  const keys = { '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), '0': all, n: () => step(1), p: () => step(-1), v: worst, t: toggleTheme, l: toggleLegend, '?': toggleHelp, '/': () => $('filter').focus(), Escape: () => choose(null) };
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target === $('filter')) { if (e.key === 'Escape') { $('filter').value = ''; filter(); view.focus(); } return; }
    if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
  });

  let saying = 0;
  function say() {
    clearTimeout(saying);
    saying = setTimeout(() => { $('said').textContent = `Showing ${seconds(Math.max(0, from))} to ${seconds(Math.min(END, to))}, ${inView.length} events, ${workers.length} workers and ${shards.length} shards.`; }, 500);
  }
  for (const name of ['keyup', 'pointerup', 'input']) addEventListener(name, say);

  // ---- Begin -------------------------------------------------------------------------------------------------------------

  // A link may say what to show: #from=12.5&to=14&filter=w1&theme=dark&legend=off, times in seconds.
  const wish = new URLSearchParams(location.hash.slice(1));
  if (['light', 'dark'].includes(wish.get('theme'))) root.dataset.theme = wish.get('theme');
  body.classList.add('live');
  if (wish.get('legend') === 'off') toggleLegend();
  $('text').open = false;
  $('worst').hidden = violations.length === 0;
  if (violations.length > 1) $('worst').textContent = `Violations (${violations.length})`;
  prefersDark.addEventListener('change', () => { theme(); changed(); });
  theme();
  layout();
  // A canvas that changes its size is empty: it is drawn again before anybody sees that.
  new ResizeObserver(() => { layout(); frame(); }).observe(view);
  if (wish.has('filter')) $('filter').value = wish.get('filter');
  filter();
  const [begin, end] = [parseFloat(wish.get('from')), parseFloat(wish.get('to'))];
  if (begin < end) look(begin * 1e6, end * 1e6);
  // What went wrong is what a failure is opened for.
  const worthwhile = violations.find((mark) => mark.at >= from && mark.at <= to);
  if (worthwhile) choose(worthwhile);
  // The first frame at once: a page that is only printed or dumped has one, too.
  frame();
  say();
  body.dataset.ready = 'yes';
})();
