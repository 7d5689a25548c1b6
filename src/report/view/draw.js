/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing the timeline. What is narrower than a pixel is drawn once for each pixel, and the next block that reaches
 * beyond it is searched for: the cost is that of the pixels, not of the blocks.
 */
const ROW = 17, HEAD = 22, RULER = 22, LANE_GAP = 6;

const chart = byId('chart'), scroll = byId('scroll'), spacer = byId('spacer'), overview = byId('overview');
const pen = chart.getContext('2d');
const isDark = matchMedia('(prefers-color-scheme: dark)');

const view = {
  axis: hasTimes ? TIME : 0,
  from: 0,
  to: 1,
  selected: null,
  hover: null,
  labels: [],
  drawn: 0,
  mergedDrawn: 0,
  milliseconds: 0
};

/* ---- colours ---- */

let paint = {};

function textHash(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

/* Modules get hues that are far apart, functions of one module shades of it. */
const moduleHues = new Map();
function moduleHue(name) {
  if (!moduleHues.has(name)) moduleHues.set(name, (212 + moduleHues.size * 137.5) % 360);
  return moduleHues.get(name);
}

function functionColor(fn) {
  const hash = textHash(fn[F.NAME]);
  const hue = moduleHue(fn[F.MODULE]) + (hash % 41) - 20, shade = (hash >> 8) % 15;
  return isDark.matches ? `hsl(${hue} ${42 + shade}% ${33 + shade}%)` :
                          `hsl(${hue} ${62 + shade}% ${70 + shade * 0.9}%)`;
}

function makeHatch(color) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const brush = tile.getContext('2d');
  brush.strokeStyle = color;
  brush.lineWidth = 1.2;
  for (const shift of [-6, 0, 6]) {
    brush.beginPath();
    brush.moveTo(shift - 1, 7);
    brush.lineTo(shift + 7, -1);
    brush.stroke();
  }
  return pen.createPattern(tile, 'repeat');
}

function makePaint() {
  const style = getComputedStyle(root), get = (name) => style.getPropertyValue(name).trim();
  moduleHues.clear();
  const weight = new Map();
  for (const fn of data.functions) weight.set(fn[F.MODULE], (weight.get(fn[F.MODULE]) || 0) + fn[F.BRANCHES]);
  for (const [name] of [...weight].sort((a, b) => b[1] - a[1])) moduleHue(name);
  paint = {
    panel: get('--panel'),
    soft: get('--soft'),
    line: get('--line'),
    text: get('--text'),
    dim: get('--dim'),
    accent: get('--accent'),
    bad: get('--bad'),
    warn: get('--warn'),
    mono: '11px ' + get('--mono'),
    functions: data.functions.map(functionColor),
    faint: isDark.matches ? '#2a323d' : '#e3e7ec',
    label: isDark.matches ? '#f2f5f9' : '#18202b',
    hatch: makeHatch(isDark.matches ? 'rgb(0 0 0 / .38)' : 'rgb(255 255 255 / .6)'),
    gap: makeHatch(isDark.matches ? 'rgb(255 255 255 / .13)' : 'rgb(0 0 0 / .14)'),
    wait: isDark.matches ? 'rgb(26 32 41 / .66)' : 'rgb(255 255 255 / .66)',
    held: makeHatch(isDark.matches ? 'rgb(232 180 76 / .6)' : 'rgb(138 90 0 / .5)'),
    leaf: isDark.matches ? '#4a4453' : '#d9d3e3',
    runs: isDark.matches ? '#4f9d69' : '#5fae7b',
    idle: isDark.matches ? '#39424f' : '#cfd6de'
  };
}

/* ---- rows ---- */

/* Is one of these blocks to be highlighted? */
function anyMatch(row, from, to) {
  for (let i = from; i < to; i++)
    if (search.matches[row.fn[i]]) return i;
  return -1;
}

function blockColor(fn) {
  return search.matches && !search.matches[fn] ? paint.faint : paint.functions[fn];
}

function addLabel(row, i, left, width, y) {
  const calls = callsOf(row, i), fn = data.functions[row.fn[i]];
  let text = calls > 1 ? `${fn[F.NAME]} \u2026 \u00d7${short(calls)}` : fn[F.NAME];
  const room = Math.floor((width - 6) / 6.65);
  if (room < 3) return;
  if (text.length > room) text = text.slice(0, room - 1) + '\u2026';
  view.labels.push([text, left + 4, y + 12, search.matches && !search.matches[row.fn[i]] ? paint.dim : paint.label]);
}

/* Labels lie over all else in a lane. */
function drawLabels(brush) {
  for (const [text, x, y, color] of view.labels) {
    brush.fillStyle = color;
    brush.fillText(text, x, y);
  }
  view.labels = [];
}

/* A block that is wide enough to be seen as one. */
function drawWide(brush, row, i, left, right, y, height) {
  if (row.events) {
    drawLeaf(brush, row, i, left, right, y, height);
    return;
  }
  const width = Math.max(1, right - left - (right - left > 3 ? 1 : 0.3));
  brush.fillStyle = blockColor(row.fn[i]);
  brush.fillRect(left, y, width, height - 1);
  if (callsOf(row, i) > 1) {
    view.mergedDrawn = Math.max(view.mergedDrawn, right - left);
    if (width > 3) {
      brush.fillStyle = paint.hatch;
      brush.fillRect(left, y, width, height - 1);
    }
  }
  if (height >= ROW - 1 && width > 26) addLabel(row, i, left, width, y);
}

function drawRow(brush, row, part, width, y, height) {
  const starts = row.start[part.axis], ends = row.end[part.axis];
  const scale = width / (part.to - part.from), count = row.count;
  let drawn = 0;
  for (let i = firstBehind(ends, part.from, 0, count); i < count && starts[i] < part.to; drawn++) {
    const left = Math.max(-2, (starts[i] - part.from) * scale),
          right = Math.min(width + 2, (ends[i] - part.from) * scale);
    if (right - left >= 1.5) {
      drawWide(brush, row, i++, left, right, y, height);
      continue;
    }
    const pixel = Math.floor(left), behind = part.from + (pixel + 1) / scale;
    const next = Math.max(i + 1, firstBehind(ends, behind, i + 1, count));
    const match = search.matches ? anyMatch(row, i, next) : i;
    brush.fillStyle = row.events ? paint.leaf : match < 0 ? paint.faint : paint.functions[row.fn[match]];
    brush.fillRect(pixel, y, 1, height - 1);
    i = next;
  }
  return drawn;
}

/* ---- lanes ---- */

const laneDepth = (lane) => Math.max(lane.rows.length, view.axis === TIME && lane.leaves ? lane.leaves.length : 0);
const laneHeight = (lane) => HEAD + (lane.isOpen ? laneDepth(lane) * ROW : 0) + LANE_GAP;

function layout() {
  let top = RULER;
  for (const lane of lanes) {
    lane.top = top;
    top += laneHeight(lane);
  }
  spacer.style.height = `${Math.max(0, top - scroll.clientHeight + 8)}px`;
}

function endText(stream) {
  const end = stream.end, signal = end.signal ? SIGNALS[end.signal] || `signal ${end.signal}` : '';
  if (end.how === 'died') return `${signal || 'died'} in ${end.in}`;
  if (end.how === 'fault') return `fault in ${end.in}`;
  return '';
}

function drawEnd(lane, y, height, width) {
  const x = (lane.range[view.axis][1] - view.from) * width / (view.to - view.from);
  if (x < -1 || x > width + 1 || lane.stream.past || (data.range && lane.stream.branches > data.range[1])) return;
  const left = Math.min(width - 2, Math.round(x)), text = '\u2716 ' + endText(lane.stream);
  pen.fillStyle = paint.bad;
  pen.fillRect(left, y + 2, 2, height - LANE_GAP);
  const wide = text.length * 6.65 + 10, named = 60 + (lane.name.length + 20) * 6.65; /* where the lane's head ends */
  const at = left - wide < named && left + wide < width ? left : Math.max(0, Math.min(width - wide, left - wide + 2));
  pen.fillRect(at, y + 2, wide, HEAD - 4);
  pen.fillStyle = isDark.matches ? '#1a0b0b' : '#ffffff';
  pen.fillText(text, at + 5, y + 15);
}

function drawGaps(lane, y, height, width) {
  if (view.axis !== 0) return;
  const scale = width / (view.to - view.from);
  for (const [stream, , first, count] of data.gaps)
    if (stream === lane.stream.number) {
      pen.fillStyle = paint.gap;
      pen.fillRect((first - view.from) * scale, y + HEAD, Math.max(2, count * scale), height - HEAD - LANE_GAP);
    }
}

function drawLane(lane, y, width, height) {
  const tall = laneHeight(lane);
  if (y + tall < 0 || y > height) return;
  pen.fillStyle = paint.soft;
  pen.fillRect(0, y + 1, width, HEAD - 3);
  pen.font = paint.mono;
  pen.fillStyle = paint.text;
  pen.fillText(`${lane.isOpen ? '\u25be' : '\u25b8'} ${lane.name}`, 6, y + 14);
  pen.fillStyle = paint.dim;
  const isTime = view.axis === TIME;
  const length = isTime ? laneTimeText(lane) : unitText(lane.stream[AXES[view.axis]], view.axis);
  pen.fillText(length, 26 + (lane.name.length + 2) * 6.65, y + 14);
  if (isTime && lane.waits) drawActivity(pen, lane, view, width, y + HEAD - 4, 3);
  if (isTime && !lane.isSum && !lane.stream.time) return;
  if (lane.isOpen) {
    for (const row of lane.rows) {
      const at = row ? y + HEAD + row.depth * ROW : 0;
      if (row && at + ROW >= 0 && at <= height) view.drawn += drawRow(pen, row, view, width, at, ROW);
    }
    drawGaps(lane, y, tall, width);
    if (isTime && lane.waits) {
      drawWaits(pen, lane, view, width, y + HEAD, tall - HEAD - LANE_GAP);
      drawLeaves(lane, y, width, height);
    }
    drawLabels(pen);
  }
  if (isTime && lane.signals) drawSignals(lane, y, width, tall);
  if (lane.isDead) drawEnd(lane, y, tall, width);
}

/* ---- the ruler ---- */

function tickStep(span, width) {
  const least = span / Math.max(1, width / 110), power = 10 ** Math.floor(Math.log10(least));
  return Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least));
}

/* With as many digits as tell one tick from the next. */
function tickText(x, step) {
  if (view.axis === TIME) return moment(x, step);
  const [size, unit] = x >= 1e9 ? [1e9, 'G'] : x >= 1e6 ? [1e6, 'M'] : [1e3, 'k'];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
  return x === 0 || step < 1000 || digits > 4 ? number(x) : (x / size).toFixed(digits) + unit;
}

function drawRuler(width) {
  const span = view.to - view.from, step = tickStep(span, width);
  pen.fillStyle = paint.panel;
  pen.fillRect(0, 0, width, RULER);
  pen.font = paint.mono;
  const first = Math.ceil(view.from / step) * step;
  for (let i = 0; i < 1000; i++) { /* numbers beyond 2^53 need not grow by the step */
    const x = first + i * step;
    if (x > view.to) break;
    const left = Math.round((x - view.from) * width / span);
    pen.fillStyle = paint.line;
    pen.fillRect(left, RULER - 6, 1, 6);
    pen.fillStyle = paint.dim;
    pen.fillText(tickText(x, step), left + 4, 14);
  }
  pen.fillStyle = paint.line;
  pen.fillRect(0, RULER - 1, width, 1);
}

function drawFrame(block, color, width) {
  if (!block || !block.lane.isOpen) return;
  const scale = width / (view.to - view.from), row = block.row;
  const left = (row.start[view.axis][block.i] - view.from) * scale,
        right = (row.end[view.axis][block.i] - view.from) * scale;
  pen.strokeStyle = color;
  pen.lineWidth = 2;
  pen.strokeRect(
    Math.max(-3, left), block.lane.top - scroll.scrollTop + HEAD + row.depth * ROW,
    Math.min(width + 6, Math.max(2, right - Math.max(-3, left))), ROW - 1);
}

/* ---- all of it ---- */

function sizeCanvas(canvas, brush, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function drawChart() {
  const began = performance.now();
  const width = scroll.clientWidth, height = scroll.clientHeight;
  if (!width || !height) return;
  sizeCanvas(chart, pen, width, height);
  pen.clearRect(0, 0, width, height);
  view.drawn = view.mergedDrawn = 0;
  for (const lane of lanes) drawLane(lane, lane.top - scroll.scrollTop, width, height);
  drawFrame(view.hover, paint.text, width);
  drawFrame(view.selected, paint.accent, width);
  drawRuler(width);
  drawOverview();
  view.milliseconds = performance.now() - began;
}

/* The largest lane as a whole, small, with a frame around what the chart shows. On the axis of time, it shows when each
 * of several threads ran. */
let small = null;

function drawThreads(brush, part, width, height) {
  const tall = Math.max(1, Math.min(8, (height - 4) / lanes.length));
  lanes.forEach((lane, i) => {
    if (2 + i * tall < height) drawActivity(brush, lane, part, width, 2 + i * tall, Math.max(1, tall - 1));
  });
}

function drawSmall(width, height) {
  const key = `${order.name} ${order.fn} ${width} ${height} ${view.axis} ${isDark.matches} ${search.text} ${devicePixelRatio}`;
  if (small && small.key === key) return small.canvas;
  const canvas = document.createElement('canvas'), brush = canvas.getContext('2d');
  sizeCanvas(canvas, brush, width, height);
  const part = {axis: view.axis, from: whole()[0], to: whole()[1]};
  const isThreads = view.axis === TIME && order.name === 'time' && lanes.length > 1;
  if (isThreads) drawThreads(brush, part, width, height);
  const rows = longLane && !isThreads ? longLane.rows.filter(Boolean) : [],
        tall = Math.max(1, Math.min(6, (height - 4) / Math.max(1, rows.length)));
  for (const row of rows)
    if (2 + row.depth * tall < height) drawRow(brush, row, part, width, 2 + row.depth * tall, tall + 1);
  small = {key, canvas};
  return canvas;
}

function drawOverview() {
  const width = overview.clientWidth, height = overview.clientHeight, brush = overview.getContext('2d');
  if (!width) return;
  const ratio = window.devicePixelRatio || 1, [from, to] = whole();
  overview.width = Math.round(width * ratio);
  overview.height = Math.round(height * ratio);
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  const saved = [view.drawn, view.mergedDrawn];
  brush.drawImage(drawSmall(width, height), 0, 0, width, height);
  [view.drawn, view.mergedDrawn] = saved;
  const left = (view.from - from) / (to - from) * width, right = (view.to - from) / (to - from) * width;
  brush.fillStyle = isDark.matches ? 'rgb(10 13 18 / .62)' : 'rgb(255 255 255 / .68)';
  brush.fillRect(0, 0, left, height);
  brush.fillRect(right, 0, width - right, height);
  brush.strokeStyle = paint.accent;
  brush.lineWidth = 1.5;
  brush.strokeRect(Math.max(1, left), 1, Math.max(3, Math.min(width - 1, right) - Math.max(1, left)), height - 2);
}

let isAwaited = false;
function redraw() {
  if (isAwaited) return;
  isAwaited = true;
  requestAnimationFrame(() => {
    isAwaited = false;
    drawChart();
    tellState();
  });
}
