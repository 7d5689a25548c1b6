/* SPDX-License-Identifier: Apache-2.0
 *
 * The page as a whole: tabs, what is said above them, and the address: what stands behind its # is a place in the page
 * (tab, order, axis, x, search or function, hit), so that a place can be sent to somebody. For tests, keys, wheel and point
 * are played as if somebody had done them, and what is shown can be read from the document's attributes data-*.
 */
const TABS = ['timeline', 'functions', 'edges', 'source', 'assembly'];
const panelOf = (tab) => tab === 'assembly' ? 'source' : tab; /* these two share one */
const state = {
  tab: 'timeline',
  isReading: false
};

function fillTab() {
  if (state.tab === 'functions' || state.tab === 'edges')
    fillTable(state.tab);
  else if (panelOf(state.tab) === 'source')
    fillSource();
}

function setTab(name) {
  if (!TABS.includes(name)) return;
  state.tab = name;
  for (const tab of TABS) {
    byId(panelOf(tab)).hidden = panelOf(tab) !== panelOf(name);
    byId(`tab-${tab}`).setAttribute('aria-selected', String(tab === name));
    byId(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
  }
  showTip(null);
  fillTab();
  layout();
  redraw();
}

function listenTabs() {
  for (const tab of TABS) {
    byId(`tab-${tab}`).addEventListener('click', () => setTab(tab));
    byId(`tab-${tab}`).addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      setTab(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
      byId(`tab-${state.tab}`).focus();
    });
  }
  byId('list').addEventListener('keydown', (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key], codes = [...byId('list').children];
    if (!step || !codes.length) return;
    event.preventDefault();
    const at = codes.findIndex((code) => code.getAttribute('aria-selected') === 'true');
    codes[(at + step + codes.length) % codes.length].click();
    byId('list').querySelector('[aria-selected="true"]').scrollIntoView({block: 'nearest'});
  });
}

/* ---- what is said above ---- */

function addNotice(kind, ...parts) {
  const notice = element('div', null, `notice ${kind}`);
  const close = button('\u00d7', () => {
    notice.remove();
    layout();
    redraw();
  });
  close.className = 'close';
  close.setAttribute('aria-label', 'Close');
  notice.append(close, ...parts);
  byId('notices').append(notice);
}

function deathNotice(lane) {
  const end = lane.stream.end, parts = [
    element(
      'b',
      `Thread ${lane.stream.number} (${lane.stream.name || '?'}) ${end.how === 'died' ? 'died' : 'ended in a fault'}`)
  ];
  const signal = end.signal ? ` of ${SIGNALS[end.signal] || `signal ${end.signal}`}` : '';
  parts.push(
    `${signal} in `, element('b', end.in),
    `. Its last branch: ${end.kind} from ${end.from} to ${end.to}${end.nowhere ? ', where no code is' : ''}.${
      end.unsure ? ' Other threads were running, too: the trace does not tell which of them met the signal.' : ''}`);
  parts.push(button('Show the end', () => {
    setOrder('time');
    showEnd(lane);
  }));
  if (end.stack.length) {
    const names = end.stack.slice(0, 12).map((fn) => data.functions[fn][F.NAME]), left = end.depth - names.length;
    parts.push(element(
      'div', `running at the end: ${names.join(' \u2190 ')}${left > 0 ? ` \u2190 ${number(left)} more` : ''}`,
      'stack'));
  }
  addNotice('bad', ...parts);
}

/* A word of a command line. */
const shellWord = (word) =>
  /^[A-Za-z0-9_.\/+@%:-]+$/.test(word) && word[0] !== '-' ? word : "'" + word.replace(/'/g, "'\\''") + "'";

function command(from, to) {
  const thread = data.streams.length > 1 && mainLane && !mainLane.isSum ?
    ` --thread ${(view.selected ? view.selected.lane : mainLane).stream.number}` :
    '';
  const module = data.module ? ` --module ${shellWord(data.module)}` : '';
  const part = view.axis === TIME ? `--time ${seconds(Math.floor(from))},${seconds(Math.ceil(to))}` :
                                    `--between ${Math.max(0, Math.floor(from))}..${Math.ceil(to)}`;
  return `lbr view${thread}${module} ${part} -o part.html ${shellWord(data.file)}`;
}

function makeNotices() {
  deadLanes.slice(0, 3).forEach(deathNotice);
  if (deadLanes.length > 3) addNotice('bad', `${number(deadLanes.length - 3)} more threads died.`);
  if (data.merge)
    addNotice(
      'warn',
      `To keep this page small, ${number(data.merged)} of ${number(data.calls)} calls, each shorter than ${
        number(data.merge)} branches${hasTimes ? ` and ${duration(1000 * data.merge)}` : ''}, are merged into hatched blocks. ` +
        'The last 4,096 calls of a thread are whole, and all counts are exact. ' +
        'Zoom in to get the command that shows a part with every call.');
  if (hasTimes && data.times.calls.left)
    addNotice(
      'warn',
      `${number(data.times.calls.left)} system calls, none of them longer than ${
        duration(data.times.calls.longest)}, are not drawn, to keep this page small.`);
  if (data.deeper) addNotice('warn', `Calls deeper than ${number(data.rows)} are counted but not drawn.`);
  if (data.uncounted) addNotice('warn', 'Stacks were too deep: the deepest calls are not counted as calls.');
  if (data.loss)
    addNotice(
      'warn',
      `The trace has gaps (${
        number(data.gaps.length + data.gapsLeftOut)}): branches are missing, and counts are too low by as many.`);
  if (data.unfinished)
    addNotice('warn', `Recording ended before the program did${data.meta.remark ? `: ${data.meta.remark}` : ''}.`);
  if (data.totals && data.totals.forgotten)
    addNotice('warn', 'There were too many different edges to keep them all: some counts of edges are too low.');
}

function makeTitle() {
  const name = data.file.replace(/^.*\//, ''), total = data.totals, parts = [data.meta.command || ''];
  if (total)
    parts.push(
      `${short(total.taken)} branches`,
      total.instructions ? `${total.unknown ? 'at least ' : ''}${short(total.instructions)} instructions` : '');
  if (hasTimes && data.only < 0) parts.push(`recorded for ${duration(data.times.lasted)}`);
  if (hasTimes && data.times.part) {
    const [from, to] = data.times.part;
    parts.push(`timeline: ${seconds(from) || '0s'} to ${seconds(to)}`);
  }
  if (data.module) parts.push(`functions of ${data.module}`);
  if (data.range)
    parts.push(
      `timeline: branches ${number(data.range[0])} to ${data.range[1] > 1e18 ? 'the end' : number(data.range[1])}`);
  byId('title').textContent = name;
  byId('about').textContent = parts.filter(Boolean).join(' \u00b7 ');
  byId('about').title = byId('about').textContent;
  document.title = `${name} - lbr view`;
}

/* ---- the state, for the address and for tests ---- */

let isTold = 0;

const selectedName = (block) =>
  block.row.events ? block.row.events[block.i][E.TEXT] : data.functions[block.row.fn[block.i]][F.NAME];

/* About how many branches of the largest thread a part of the axis has. */
function branchesIn(span) {
  if (view.axis !== TIME || !longLane) return span;
  const [from, to] = longLane.range[TIME];
  return to > from ? span / (to - from) * (longLane.range[0][1] - longLane.range[0][0]) : 0;
}

function tellState() {
  const unit = AXES[view.axis], set = root.dataset, span = view.to - view.from;
  byId('where').textContent = `${placeText(Math.floor(view.from), span, view.axis)} \u2013 ${
    placeText(Math.ceil(view.to), span, view.axis)} (${unitText(span, view.axis)})`;
  const wantsDetail = data.merge && view.mergedDrawn > 60 && view.axis !== 1 && branchesIn(span) < 5e7;
  byId('hint').replaceChildren(
    ...(wantsDetail ? ['Merged here. Every call: ', element('code', command(view.from, view.to))] : []));
  Object.assign(set, {
    tab: state.tab,
    axis: unit,
    order: order.name,
    of: order.fn < 0 ? '' : data.functions[order.fn][F.NAME],
    lanes: lanes.map((lane) => lane.name).join('; '),
    from: Math.floor(view.from),
    to: Math.ceil(view.to),
    drawn: view.drawn,
    drawing: view.milliseconds.toFixed(1),
    blocks: data.blocks,
    search: search.text,
    hits: search.hits.length,
    calls: search.calls,
    hit: search.at,
    detail: data.merge ? 'merged' : 'full',
    crash: deadLanes.length ? deadLanes[0].stream.end.in : '',
    selected: view.selected ? selectedName(view.selected) : ''
  });
  clearTimeout(isTold);
  isTold = setTimeout(tellAddress, 250);
}

function tellAddress() {
  const parts = new URLSearchParams(), [from, to] = whole();
  if (state.tab !== 'timeline') parts.set('tab', state.tab);
  if (view.axis !== (hasTimes ? TIME : 0)) parts.set('axis', AXES[view.axis]);
  const isPart = view.from > from || view.to < to;
  parts.set('x', isPart ? `${Math.floor(view.from)}-${Math.ceil(view.to)}` : 'all');
  if (order.name !== 'time') parts.set('order', order.name);
  if (order.fn >= 0) parts.set('of', data.functions[order.fn][F.NAME]);
  if (search.text) parts.set(search.isExact ? 'function' : 'search', search.text);
  try {
    history.replaceState(null, '', `#${parts}`);
  } catch {
    /* Not everywhere may a page change its address. */
  }
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has('axis')) setAxis(Math.max(0, AXES.indexOf(parts.get('axis'))));
  const named = data.functions.findIndex((fn) => fn[F.NAME] === parts.get('of'));
  setOrder(parts.get('order') || 'time', named);
  const range = /^(\d+)-(\d+)$/.exec(parts.get('x') || '');
  if (range && Number(range[1]) < Number(range[2]))
    show(Number(range[1]), Number(range[2]));
  else if (parts.get('x') === 'end' && mainLane)
    showEnd(mainLane);
  else if (parts.get('x') === 'all')
    show(...whole());
  setSearch(parts.get('function') || parts.get('search') || '', parts.has('function'));
  for (let i = Number(parts.get('hit') || 0); i > 0 && i < 1e5; i--) goToHit(1);
  setTab(parts.get('tab') || 'timeline');
}

/* keys=wwd presses keys, wheel=-240@100 turns the wheel there, point=100,60 moves the mouse to a point of the chart. */
function playEvents(parts) {
  for (const key of parts.get('keys') || '')
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  const box = chart.getBoundingClientRect(), wheel = /^(-?\d+)@(\d+)$/.exec(parts.get('wheel') || ''),
        point = /^(\d+),(\d+)$/.exec(parts.get('point') || '');
  if (wheel)
    chart.dispatchEvent(new WheelEvent(
      'wheel',
      {deltaY: Number(wheel[1]), clientX: box.left + Number(wheel[2]), clientY: box.top + 40, cancelable: true}));
  if (point)
    chart.dispatchEvent(
      new PointerEvent('pointermove', {clientX: box.left + Number(point[1]), clientY: box.top + Number(point[2])}));
}

/* ---- the start ---- */

function listen() {
  listenTabs();
  listenMouse();
  listenKeys();
  listenSearch();
  AXES.forEach((name, axis) => byId(`axis-${name}`).addEventListener('click', () => setAxis(axis)));
  for (const name of ORDERS) byId(`order-${name}`).addEventListener('click', () => setOrder(name));
  byId('keys').addEventListener('click', toggleKeys);
  byId('keys-close').addEventListener('click', toggleKeys);
  byId('zoom-in').addEventListener('click', () => zoom(0.6));
  byId('zoom-out').addEventListener('click', () => zoom(1 / 0.6));
  byId('zoom-all').addEventListener('click', () => show(...whole()));
  byId('zoom-end').addEventListener('click', () => mainLane && showEnd(view.selected ? view.selected.lane : mainLane));
  scroll.addEventListener('scroll', redraw);
  window.addEventListener('hashchange', readAddress);
  /* Later, because a scroll bar that appears changes the size again. */
  new ResizeObserver(() => requestAnimationFrame(() => {
    layout();
    drawChart();
    tellState();
  })).observe(scroll);
  isDark.addEventListener('change', () => {
    makePaint();
    redraw();
  });
}

function start() {
  if (!hasInstructions) {
    byId('axis-instructions').disabled = true;
    byId('axis-instructions').title = 'The code of this trace is not known: instructions cannot be counted';
  }
  if (hasTimes) {
    byId('order-time').textContent = 'In order'; /* two buttons named Time would be one too many */
    addTimes(timeLanes);
    tellAxis();
  } else
    byId('axis-time').remove();
  useLanes(timeLanes);
  for (const name of ORDERS) byId(`order-${name}`).disabled = name !== 'time' && !data.stacks.length;
  makeTitle();
  makeNotices();
  makePaint();
  layout();
  listen();
  showDetails();
  const parts = new URLSearchParams(location.hash.slice(1));
  readAddress();
  drawChart();
  playEvents(parts);
  tellState();
  root.dataset.milliseconds = Math.round(performance.now());
  root.dataset.ready = 'yes';
}

start();
