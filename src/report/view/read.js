'use strict';
/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr view`: its data. The files of this folder are one script, in the order of view_embed.S. Strings of
 * the trace are shown by textContent and by the canvas only: they are never a part of the page.
 */
const byId = (id) => document.getElementById(id);
const root = document.documentElement;

window.addEventListener('error', (event) => {
  root.dataset.error = event.message;
});

const data = JSON.parse(byId('data').textContent);

/* Axes: 0 counts branches, 1 instructions, 2 nanoseconds, if the trace has times. */
const AXES = data.times ? ['branches', 'instructions', 'time'] : ['branches', 'instructions'];

/* A function's row in data.functions. */
const F = {
  NAME: 0,
  MODULE: 1,
  CALLS: 2,
  BRANCHES: 3,
  ALL_BRANCHES: 4,
  INSTRUCTIONS: 5,
  ALL_INSTRUCTIONS: 6,
  FILE: 7,
  ADDRESS: 8,
  TIME: 10,
  ALL_TIME: 11,
  WAITED: 12,
  ALL_WAITED: 13
};

/* How a call was left: enum report_call_how. */
const HOW = {
  4: 'return',
  5: 'longjmp or exception',
  6: 'the end of the thread',
  7: 'missing branches'
};

const FLAG = {
  BEFORE: 1,
  BEHIND: 2
};

const SIGNALS = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  5: 'SIGTRAP',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  10: 'SIGUSR1',
  11: 'SIGSEGV',
  12: 'SIGUSR2',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS'
};

/* ---- numbers as text ---- */

const plain = new Intl.NumberFormat('en-US');
const number = (value) => plain.format(value);

function short(value) {
  if (value < 10000) return number(Math.round(value));
  for (const [size, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (value >= size) return (value / size).toPrecision(value / size >= 100 ? 4 : 3) + unit;
  return number(value);
}

function percent(part, whole) {
  if (!whole) return '';
  const share = 100 * part / whole;
  return share === 0 ? '0%' : share < 0.01 ? '<0.01%' : share.toFixed(share < 10 ? 2 : 1) + '%';
}

/* ---- elements ---- */

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function button(text, action) {
  const made = element('button', text);
  made.type = 'button';
  made.addEventListener('click', action);
  return made;
}

/* ---- the blocks: view_write.c says how they are packed ---- */

function blockBytes() {
  const packed = atob(byId('blocks').textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return bytes;
}

function readRow(next) {
  const depth = next(), count = next();
  const row = {
    depth,
    count,
    start: AXES.map(() => new Float64Array(count)),
    end: AXES.map(() => new Float64Array(count)),
    fn: new Uint32Array(count),
    calls: null,
    busy: null,
    bits: null,
    waited: null,
    held: null
  };
  let branch = 0, instruction = 0, time = 0;
  for (let i = 0; i < count; i++) {
    branch += next();
    row.start[0][i] = branch;
    branch += next();
    row.end[0][i] = branch;
    instruction += next();
    row.start[1][i] = instruction;
    instruction += next();
    row.end[1][i] = instruction;
    if (data.times) {
      time += next();
      row.start[2][i] = time;
      time += next();
      row.end[2][i] = time;
    }
    const word = next();
    row.fn[i] = Math.floor(word / (data.times ? 4 : 2));
    if (data.times && word & 2) {
      row.waited = row.waited || new Float64Array(count);
      row.held = row.held || new Float64Array(count);
      row.waited[i] = next();
      row.held[i] = next();
    }
    if (word % 2) {
      if (!row.calls) {
        row.calls = new Float64Array(count).fill(1);
        row.busy = new Float64Array(count);
        row.bits = new Uint8Array(count).fill(4 << 3);
      }
      row.bits[i] = next();
      row.calls[i] = next();
      row.busy[i] = next();
    }
  }
  return row;
}

function readBlocks() {
  const bytes = blockBytes();
  let at = 0;
  function next() {
    let byte = bytes[at++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  const rows = new Map();
  for (let streams = next(); streams > 0; streams--) {
    const stream = next(), list = [];
    for (let count = next(); count > 0; count--) {
      const row = readRow(next);
      list[row.depth] = row;
    }
    rows.set(stream, list);
  }
  return rows;
}

const callsOf = (row, i) => row.calls ? row.calls[i] : 1;
const flagsOf = (row, i) => row.bits ? row.bits[i] & 7 : 0;
const howOf = (row, i) => row.bits ? row.bits[i] >> 3 : 4;

/* ---- lanes: a stream with its rows ---- */

function laneName(stream) {
  const numbers = stream.process ?
    `process ${stream.process}` + (stream.thread !== stream.process ? `, thread ${stream.thread}` : '') :
                                                                      '';
  return [`${stream.number}`, stream.name, numbers, stream.command].filter(Boolean).join('  ');
}

const rowsOf = readBlocks();
const timeLanes = data.streams.filter((stream) => data.only < 0 || stream.number === data.only)
                    .map((stream) => ({
                           stream,
                           rows: Array.from(rowsOf.get(stream.number) || [], (row) => row || null),
                           isOpen: true,
                           isSum: false,
                           name: laneName(stream),
                           top: 0,
                           isDead: stream.end.how === 'died' || stream.end.how === 'fault'
                         }));
const hasInstructions = data.totals !== null && data.totals.instructions > 0;

/* Where the blocks of a lane begin and end. */
function laneRange(lane, axis) {
  let from = Infinity, to = 0;
  for (const row of lane.rows)
    if (row && row.count) {
      from = Math.min(from, row.start[axis][0]);
      to = Math.max(to, row.end[axis][row.count - 1]);
    }
  return from < to ? [from, to] : [0, 0];
}
for (const lane of timeLanes) {
  lane.range = AXES.map((name, axis) => laneRange(lane, axis));
  if (data.times) lane.range[2] = lane.stream.time ? lane.stream.time.slice(0, 2) : [0, 0];
}

/* Threads in the order of their work. */
const laneLength = (lane) => lane.range[0][1] - lane.range[0][0];
timeLanes.sort((a, b) => laneLength(b) - laneLength(a) || a.stream.number - b.stream.number);
const deadLanes = timeLanes.filter((lane) => lane.isDead);
if (timeLanes.length > 8) timeLanes.forEach((lane, i) => {
  lane.isOpen = lane.isDead || i < 4;
});

/* What is drawn: the lanes, the one that keys act on, and the one of the overview. */
let lanes, mainLane, longLane;
function useLanes(list) {
  lanes = list;
  longLane = list[list.length > 1 && list[0].isSum ? 1 : 0];
  mainLane = (list === timeLanes && deadLanes[0]) || longLane;
}

/* The first block of a row that ends behind x. */
function firstBehind(ends, x, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
