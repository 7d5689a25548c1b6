/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving about in the timeline: wheel, mouse, fingers and keys; what is under the pointer.
 */
/* All that there is on the axis. */
function whole() {
  let from = Infinity, to = 0;
  for (const lane of lanes) {
    if (lane.range[view.axis][1] <= lane.range[view.axis][0]) continue;
    from = Math.min(from, lane.range[view.axis][0]);
    to = Math.max(to, lane.range[view.axis][1]);
  }
  return from < to ? [from, to] : [0, 1];
}

function show(from, to) {
  const [first, last] = whole(), least = Math.min(8, last - first),
                span = Math.max(least, Math.min(to - from, last - first));
  const middle = (from + to) / 2, room = span * 0.06; /* so that the end can be seen as one */
  view.from = Math.max(first, Math.min(last + room - span, middle - span / 2));
  view.to = view.from + span;
  redraw();
}

function zoom(factor, at) {
  const middle = at === undefined ? (view.from + view.to) / 2 : at;
  show(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
}

function pan(share) {
  const shift = (view.to - view.from) * share;
  show(view.from + shift, view.to + shift);
}

/* ---- from one axis to another ---- */

/* The place on another axis: inside the deepest block that is there, in proportion. */
function otherAxis(lane, x, axis, other) {
  let [low, high] = lane.range[axis], [from, to] = lane.range[other];
  for (const row of lane.rows) {
    if (!row) continue;
    const i = firstBehind(row.end[axis], x, 0, row.count);
    if (i >= row.count || row.start[axis][i] > x) break;
    [low, high, from, to] = [row.start[axis][i], row.end[axis][i], row.start[other][i], row.end[other][i]];
  }
  return high > low ? from + (x - low) / (high - low) * (to - from) : from;
}

function setAxis(axis) {
  if (axis === view.axis || axis >= AXES.length || (axis === 1 && !hasInstructions)) return;
  const lane = view.selected ? view.selected.lane : mainLane;
  const isAll = view.to - view.from >= whole()[1] - whole()[0];
  const from = lane ? otherAxis(lane, view.from, view.axis, axis) : 0,
        to = lane ? otherAxis(lane, view.to, view.axis, axis) : 1;
  view.axis = axis;
  if (view.selected && view.selected.row.events) select(null);
  tellAxis();
  layout();
  if (isAll)
    show(...whole());
  else
    show(from, to);
}

function tellAxis() {
  AXES.forEach((name, axis) => byId(`axis-${name}`).setAttribute('aria-pressed', String(axis === view.axis)));
}

/* ---- places ---- */

/* The outermost call of `main` in a lane: what comes before is the dynamic linker's. */
function mainBlock(lane) {
  for (const row of lane.rows)
    for (let i = 0; row && i < row.count; i++)
      if (callsOf(row, i) === 1 && /^main(\.main)?$/.test(data.functions[row.fn[i]][F.NAME])) return {row, i};
  return null;
}

/* Where the page begins: at main, or else with the thread that ran most. */
function showBegin() {
  const begin = mainLane ? mainBlock(mainLane) : null;
  if (begin)
    show(begin.row.start[view.axis][begin.i], begin.row.end[view.axis][begin.i]);
  else if (mainLane && mainLane.range[view.axis][1] > mainLane.range[view.axis][0])
    show(...mainLane.range[view.axis]);
  else
    show(...whole());
}

function showBlock(lane, row, i, share) {
  const start = row.start[view.axis][i], end = row.end[view.axis][i], span = (end - start) / share;
  if (!lane.isOpen) toggleLane(lane);
  show((start + end) / 2 - span / 2, (start + end) / 2 + span / 2);
  showRow(lane, row.depth);
}

function showRow(lane, depth) {
  const y = lane.top + HEAD + depth * ROW, height = scroll.clientHeight;
  if (y < scroll.scrollTop + RULER + ROW || y > scroll.scrollTop + height - 2 * ROW)
    scroll.scrollTop = Math.max(0, y - height / 2);
}

function showEnd(lane) {
  const end = lane.range[view.axis][1], last = lane.range[0][1] - 200;
  const wanted = view.axis === TIME ? Math.max(1000, end - otherAxis(lane, last, 0, TIME)) : view.axis ? 1000 : 200;
  const span = Math.max(8, Math.min(wanted, (whole()[1] - whole()[0]) * 0.9));
  if (!lane.isOpen) toggleLane(lane);
  show(end - span * 0.93, end + span * 0.07);
  scroll.scrollTop = Math.max(0, lane.top - RULER);
}

function toggleLane(lane) {
  lane.isOpen = !lane.isOpen;
  layout();
  redraw();
}

/* The block under a point of the chart, or the head of a lane. */
function blockAt(x, y) {
  const at = y + scroll.scrollTop, position = view.from + x / scroll.clientWidth * (view.to - view.from);
  for (const lane of lanes) {
    if (y < RULER || at < lane.top || at >= lane.top + laneHeight(lane)) continue;
    const slack = (view.to - view.from) / scroll.clientWidth;
    if (at < lane.top + HEAD) return {lane, head: true, signal: signalAt(lane, position, slack)};
    const depth = Math.floor((at - lane.top - HEAD) / ROW);
    const leaf = lane.isOpen ? leafAt(lane, depth, position, slack) : null;
    if (leaf) return leaf;
    const row = lane.isOpen ? lane.rows[depth] : null;
    if (!row) return null;
    const i = firstBehind(row.end[view.axis], position - slack / 2, 0, row.count);
    return i < row.count && row.start[view.axis][i] <= position + slack ? {lane, row, i} : null;
  }
  return null;
}

/* ---- what is told about a block ---- */

function blockFacts(block) {
  const {lane, row, i} = block, calls = callsOf(row, i), facts = [];
  if (row.events) return leafFacts(block);
  if (lane.isSum) facts.push(['calls', number(row.sums[i]), '']);
  if (hasTimes) facts.push(...timeFacts(block));
  AXES.slice(0, 2).forEach((unit, axis) => {
    const size = row.end[axis][i] - row.start[axis][i];
    if (axis === 0 || hasInstructions)
      facts.push([unit, number(size), percent(size, lane.stream[unit]) + (lane.isSum ? '' : ' of the thread')]);
  });
  if (lane.isSum) return facts;
  if (calls > 1) {
    facts.push(['calls, merged', number(calls), '']);
    facts.push(['branches in them', number(row.busy[i]), '']);
  }
  facts.push(['from branch', number(row.start[0][i]), flagsOf(row, i) & FLAG.BEFORE ? 'began before this part' : '']);
  facts.push(['depth', number(row.depth), '']);
  if (calls === 1 && howOf(row, i) !== 4) facts.push(['left by', HOW[howOf(row, i)] || '?', '']);
  if (flagsOf(row, i) & FLAG.BEHIND) facts.push(['', 'goes on behind this part', '']);
  return facts;
}

function blockTitle(block) {
  if (block.row.events) return block.row.events[block.i][E.TEXT];
  const fn = data.functions[block.row.fn[block.i]];
  return callsOf(block.row, block.i) > 1 ? `mainly ${fn[F.NAME]}` : fn[F.NAME];
}

const blockPlace = (block) => block.row.events ? 'system call' : data.functions[block.row.fn[block.i]][F.MODULE];

const tip = byId('tip');

function tipParts(block) {
  if (block.head) return signalParts(block.signal);
  const table = element('table');
  for (const fact of blockFacts(block)) {
    const line = table.insertRow();
    for (const text of fact) line.insertCell().textContent = text;
  }
  return [element('b', blockTitle(block)), element('div', blockPlace(block), 'dim'), table];
}

function showTip(block, x, y) {
  if (!block || (block.head && !block.signal)) {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(...tipParts(block));
  tip.hidden = false;
  tip.style.left = tip.style.top = '0'; /* its size depends on the room it has */
  tip.style.left = `${Math.max(4, Math.min(innerWidth - tip.offsetWidth - 8, x + 14))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 12) : y + 18}px`;
}

function showDetails() {
  const details = byId('details'), block = view.selected;
  if (!block) {
    details.replaceChildren(element('span', 'Click a call to see its numbers here.', 'dim'));
    return;
  }
  const fn = data.functions[block.row.fn[block.i]], unit = hasInstructions ? 'instructions' : 'branches';
  const parts = [element('b', blockTitle(block)), element('span', blockPlace(block), 'dim')];
  for (const [name, value, more] of blockFacts(block))
    parts.push(element('span', `${name} ${value} ${more && `(${more})`}`.trim()));
  if (!fn) {
    details.replaceChildren(...parts);
    return;
  }
  parts.push(element(
    'span',
    `of ${fn[F.NAME]} in all: ${number(fn[F.CALLS])} calls, ${
      number(fn[hasInstructions ? F.INSTRUCTIONS : F.BRANCHES])} ${unit} in itself`,
    'dim'));
  parts.push(button('All its calls', () => setSearch(fn[F.NAME], true)));
  parts.push(button('Callers and called', () => setOrder('sandwich', block.row.fn[block.i])));
  if (codeOf(fn)) parts.push(button('Source', () => showCode(codeOf(fn))));
  details.replaceChildren(...parts);
}

function select(block) {
  view.selected = block;
  showDetails();
  redraw();
}

/* ---- the mouse ---- */

let drag = null;

function listenMouse() {
  chart.addEventListener('wheel', (event) => {
    event.preventDefault();
    const size = event.deltaMode === 1 ? 16 : 1, x = event.deltaX * size, y = event.deltaY * size;
    if (event.shiftKey || Math.abs(x) > Math.abs(y))
      pan((x || y) / scroll.clientWidth);
    else if (event.altKey)
      scroll.scrollTop += y;
    else
      zoom(
        Math.exp(Math.max(-240, Math.min(240, y)) * 0.0022),
        view.from + event.offsetX / scroll.clientWidth * (view.to - view.from));
    showTip(null);
  }, {passive: false});
  chart.addEventListener('pointerdown', (event) => {
    drag = {x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: scroll.scrollTop, isMoved: false};
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener('pointermove', (event) => {
    if (drag) {
      const x = event.clientX - drag.x, y = event.clientY - drag.y;
      drag.isMoved = drag.isMoved || Math.abs(x) + Math.abs(y) > 4;
      if (!drag.isMoved) return;
      const shift = x / scroll.clientWidth * (drag.to - drag.from);
      scroll.scrollTop = drag.top - y;
      show(drag.from - shift, drag.to - shift);
      showTip(null);
      return;
    }
    const block = blockAt(event.offsetX, event.offsetY);
    view.hover = block && !block.head ? block : null;
    chart.style.cursor = block ? 'pointer' : 'default';
    showTip(block, event.clientX, event.clientY);
    redraw();
  });
  chart.addEventListener('pointerup', (event) => {
    const block = drag && !drag.isMoved ? blockAt(event.offsetX, event.offsetY) : null;
    const isClick = drag && !drag.isMoved;
    drag = null;
    if (block && block.head)
      toggleLane(block.lane);
    else if (isClick)
      select(block);
  });
  chart.addEventListener('dblclick', (event) => {
    const block = blockAt(event.offsetX, event.offsetY);
    if (block && !block.head) showBlock(block.lane, block.row, block.i, 0.9);
  });
  chart.addEventListener('pointerleave', () => {
    view.hover = null;
    showTip(null);
    redraw();
  });
  const jump = (event) => {
    if (!event.buttons) return;
    const [from, to] = whole(), x = from + event.offsetX / overview.clientWidth * (to - from),
                 half = (view.to - view.from) / 2;
    show(x - half, x + half);
  };
  overview.addEventListener('pointerdown', (event) => {
    overview.setPointerCapture(event.pointerId);
    jump(event);
  });
  overview.addEventListener('pointermove', jump);
}

/* ---- keys ---- */

function toggleKeys() {
  const help = byId('keys-help');
  if (help.open)
    help.close();
  else
    help.showModal();
}

const KEYS = {
  w: () => zoom(0.7),
  ArrowUp: () => zoom(0.7),
  '+': () => zoom(0.7),
  s: () => zoom(1 / 0.7),
  ArrowDown: () => zoom(1 / 0.7),
  '-': () => zoom(1 / 0.7),
  a: () => pan(-0.15),
  ArrowLeft: () => pan(-0.15),
  d: () => pan(0.15),
  ArrowRight: () => pan(0.15),
  0: () => show(...whole()),
  e: () => mainLane && showEnd(mainLane),
  t: () => setOrder('time'),
  l: () => setOrder('heavy'),
  c: () => setOrder('sandwich'),
  n: () => goToHit(1),
  N: () => goToHit(-1),
  PageDown: () => scroll.scrollBy(0, scroll.clientHeight * 0.8),
  PageUp: () => scroll.scrollBy(0, -scroll.clientHeight * 0.8),
};

function listenKeys() {
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target.tagName === 'INPUT';
    if (event.key === 'Escape') {
      if (isTyping) event.target.blur();
      setSearch('', false);
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') {
      event.preventDefault();
      byId('search').select();
      return;
    }
    if (event.key === '?') {
      event.preventDefault();
      toggleKeys();
      return;
    }
    const isTab = event.target.getAttribute && event.target.getAttribute('role') === 'tab';
    const action = KEYS[event.key] || KEYS[event.key.toLowerCase()];
    if (state.tab !== 'timeline' || !action || (isTab && event.key.startsWith('Arrow'))) return;
    event.preventDefault();
    action();
  });
}
