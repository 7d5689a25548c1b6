/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in the page, if the trace has times: an axis that all threads share, in nanoseconds since the start of the
 * recording; system calls as leaves below the functions that made them; signals; and waits.
 */
const TIME = 2; /* the axis */
const hasTimes = data.times !== null;

/* An event: view_events.c. */
const E = {
  STREAM: 0,
  START: 1,
  END: 2,
  DURATION: 3,
  WAITED: 4,
  KIND: 5,
  DEPTH: 6,
  FUNCTION: 7,
  TEXT: 8
};

const IS_HELD = 2; /* the kind of a wait for the recorder; others are waits for a processor */

/* ---- times as text ---- */

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']];

/* With three digits that count. */
function duration(value) {
  const [size, unit] = UNITS.find(([each]) => value >= each * 0.9995) || UNITS[3], amount = value / size;
  return `${size === 1 ? Math.round(amount) : amount.toFixed(amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0)} ${unit}`;
}

/* A moment, with as many digits as tell one step from the next. */
function moment(value, step) {
  const [size, unit] = UNITS.find(([each]) => value >= each) || UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / Math.max(1, step)) - 1e-9)));
  return value === 0 ? '0' : `${(value / size).toFixed(digits)} ${unit}`;
}

/* For the option --time. */
const seconds = (value) => value > 0 ? `${(value / 1e9).toFixed(9).replace(/\.?0+$/, '')}s` : '';

const unitText = (value, axis) => axis === TIME ? duration(value) : `${short(value)} ${AXES[axis]}`;
const placeText = (value, span, axis) => axis === TIME ? moment(value, span / 1000) : number(value);

/* ---- leaves: a row of system calls for each depth ---- */

function makeLeaf(depth, events) {
  const starts = Float64Array.from(events, (event) => event[E.START]),
        ends = Float64Array.from(events, (event) => event[E.END]);
  return {
    depth,
    count: events.length,
    start: [starts, starts, starts],
    end: [ends, ends, ends],
    fn: Int32Array.from(events, (event) => event[E.FUNCTION]),
    calls: null,
    busy: null,
    bits: null,
    events
  };
}

function byStream(events) {
  const found = new Map();
  for (const event of events) {
    if (!found.has(event[E.STREAM])) found.set(event[E.STREAM], []);
    found.get(event[E.STREAM]).push(event);
  }
  for (const list of found.values()) list.sort((a, b) => a[E.START] - b[E.START] || a[E.END] - b[E.END]);
  return found;
}

/* Calls of a thread follow each other, whatever a trace says. */
function makeLeaves(events) {
  const rows = [];
  let end = 0;
  for (const event of events) {
    event[E.START] = Math.max(event[E.START], end);
    end = event[E.END] = Math.max(event[E.END], event[E.START]);
    (rows[event[E.DEPTH]] = rows[event[E.DEPTH]] || []).push(event);
  }
  return Array.from(rows, (list, depth) => list ? makeLeaf(depth, list) : null);
}

/* Waits as one sorted list: the share of each stretch in which the thread did not run. */
function makeWaits(waits, calls) {
  return waits.concat(calls.filter((event) => event[E.WAITED] > 0))
    .map((event) => ({
           start: event[E.START],
           end: event[E.END],
           isHeld: event[E.KIND] === IS_HELD,
           share: Math.min(1, event[E.WAITED] / Math.max(1, event[E.DURATION]))
         }))
    .sort((a, b) => a.start - b.start);
}

function addTimes(list) {
  const calls = byStream(data.times.calls.events), waits = byStream(data.times.waits.events),
        signals = byStream(data.times.signals.events);
  for (const lane of list) {
    const number = lane.stream.number, mine = calls.get(number) || [];
    lane.leaves = makeLeaves(mine);
    lane.waits = makeWaits(waits.get(number) || [], mine);
    lane.signals = signals.get(number) || [];
  }
}

/* ---- drawing ---- */

/* Where a thread waited, its calls are pale: the more of the time, the paler. */
function drawWaits(brush, lane, part, width, y, height) {
  const scale = width / (part.to - part.from);
  let done = -1;
  for (const wait of lane.waits) {
    if (wait.end < part.from || wait.start > part.to) continue;
    const left = Math.max(-2, (wait.start - part.from) * scale),
          right = Math.min(width + 2, (wait.end - part.from) * scale);
    if (right < done + 1 || (wait.share < 0.02 && !wait.isHeld)) continue;
    brush.globalAlpha = wait.share;
    brush.fillStyle = wait.isHeld ? paint.held : paint.wait;
    brush.fillRect(left, y, Math.max(1, right - left), height);
    done = right;
  }
  brush.globalAlpha = 1;
}

/* When the thread ran: a line below the lane's name, with holes where it waited. */
function drawActivity(brush, lane, part, width, y, height) {
  const scale = width / (part.to - part.from), [from, to] = lane.range[TIME];
  const left = Math.max(0, (from - part.from) * scale), right = Math.min(width, (to - part.from) * scale);
  if (right <= left) return;
  brush.fillStyle = paint.runs;
  brush.fillRect(left, y, Math.max(1, right - left), height);
  drawIdle(brush, lane, part, width, y, height);
}

function drawIdle(brush, lane, part, width, y, height) {
  const scale = width / (part.to - part.from);
  for (const wait of lane.waits) {
    const left = Math.max(0, (wait.start - part.from) * scale), right = Math.min(width, (wait.end - part.from) * scale);
    if (right - left < 0.5) continue;
    brush.globalAlpha = wait.share;
    brush.fillStyle = paint.idle;
    brush.fillRect(left, y, right - left, height);
  }
  brush.globalAlpha = 1;
}

function addLeafLabel(row, i, left, width, y) {
  const event = row.events[i], room = Math.floor((width - 6) / 6.65);
  let text = `${event[E.TEXT]}, ${duration(event[E.DURATION])}`;
  if (room < 3) return;
  if (text.length > room) text = text.slice(0, room - 1) + '\u2026';
  view.labels.push([text, left + 4, y + 12, paint.label]);
}

function drawLeaf(brush, row, i, left, right, y, height) {
  const width = Math.max(1, right - left - (right - left > 3 ? 1 : 0.3));
  brush.fillStyle = paint.leaf;
  brush.fillRect(left, y, width, height - 1);
  if (width > 26) addLeafLabel(row, i, left, width, y);
}

function drawLeaves(lane, y, width, height) {
  for (const row of lane.leaves) {
    const at = row ? y + HEAD + row.depth * ROW : 0;
    if (row && at + ROW >= 0 && at <= height) view.drawn += drawRow(pen, row, view, width, at, ROW);
  }
}

/* Signals are flags in the lane's head, with a line down through its calls. */
function drawSignals(lane, y, width, height) {
  const scale = width / (view.to - view.from);
  let done = -Infinity;
  for (const signal of lane.signals) {
    const x = Math.round((signal[E.START] - view.from) * scale);
    if (x < -8 || x > width + 8 || x < done + 1) continue;
    pen.fillStyle = paint.warn;
    pen.fillRect(x, y + 2, 1, height - LANE_GAP - 2);
    pen.beginPath();
    pen.moveTo(x, y + 3);
    pen.lineTo(x + 8, y + 7);
    pen.lineTo(x, y + 11);
    pen.fill();
    done = x;
  }
}

/* ---- what is under the pointer ---- */

function leafAt(lane, depth, position, slack) {
  const row = view.axis === TIME && lane.leaves ? lane.leaves[depth] : null;
  if (!row) return null;
  const i = firstBehind(row.end[TIME], position - slack / 2, 0, row.count);
  return i < row.count && row.start[TIME][i] <= position + slack ? {lane, row, i} : null;
}

/* The flag of a signal is eight pixels wide. */
function signalAt(lane, position, slack) {
  if (view.axis !== TIME || !lane.signals) return null;
  for (const signal of lane.signals)
    if (position >= signal[E.START] - slack && position <= signal[E.START] + 9 * slack) return signal;
  return null;
}

function signalParts(signal) {
  return [element('b', signal[E.TEXT]), element('div', `at ${moment(signal[E.START], 1)}`, 'dim')];
}

function waitFacts(all, waited) {
  return [
    ['running', duration(Math.max(0, all - waited)), percent(all - waited, all)],
    ['waiting', duration(waited), percent(waited, all)]
  ];
}

function leafFacts(block) {
  const event = block.row.events[block.i], fn = data.functions[event[E.FUNCTION]];
  const facts = [['duration', duration(event[E.DURATION]), '']];
  if (event[E.WAITED]) facts.push(...waitFacts(event[E.DURATION], event[E.WAITED]));
  facts.push(['at', moment(event[E.START], 1), '']);
  if (fn) facts.push(['made by', fn[F.NAME], '']);
  return facts;
}

/* A call's duration does not include the time that the thread waited for the recorder. */
function timeFacts(block) {
  const {lane, row, i} = block, passed = row.end[TIME][i] - row.start[TIME][i];
  if (lane.isSum)
    return [['time', duration(passed), percent(passed, lane.stream.time)], ['waiting', duration(row.waits[i]), '']];
  if (!lane.stream.time) return [];
  const held = row.held ? row.held[i] : 0, all = Math.max(0, passed - held),
        waited = Math.min(all, row.waited ? row.waited[i] : 0), isMerged = callsOf(row, i) > 1;
  const facts = [[isMerged ? 'time span' : 'duration', duration(all), '']];
  if (isMerged)
    facts.push(['waiting in them', duration(waited), '']);
  else
    facts.push(...waitFacts(all, waited));
  if (held) facts.push(['waited for the recorder', duration(held), '']);
  facts.push(['at', moment(row.start[TIME][i], 1), '']);
  return facts;
}

function laneTimeText(lane) {
  if (lane.isSum) return duration(lane.stream.time);
  if (!lane.stream.time) return 'no times';
  const [from, to, waited, held] = lane.stream.time, all = Math.max(0, to - from - held);
  return `${duration(all)}, waiting ${percent(Math.min(waited, all), all)}${
    held ? `, and ${duration(held)} for the recorder` : ''}`;
}
