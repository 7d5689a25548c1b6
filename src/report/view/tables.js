/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of functions and edges. All numbers are counts, not samples.
 */
const ROWS_MAX = 1000;

const sums = {
  branches: 0,
  instructions: 0,
  time: 0
};
for (const fn of data.functions) {
  sums.branches += fn[F.BRANCHES];
  sums.instructions += fn[F.INSTRUCTIONS];
  sums.time += hasTimes ? fn[F.TIME] : 0;
}

const timeColumn = (title, column, of) =>
  ({title, value: (fn) => fn[column], kind: 'number', text: (fn) => duration(fn[column]), of});

const TIME_COLUMNS = [
  timeColumn('Own time', F.TIME, sums.time),
  timeColumn('with callees', F.ALL_TIME),
  timeColumn('Own waiting', F.WAITED),
  timeColumn('with callees', F.ALL_WAITED)
];

/* Columns: title, value to sort by, text, class name. */
const FUNCTION_COLUMNS =
  [
    {title: 'Function', value: (fn) => fn[F.NAME], kind: 'name'},
    {title: 'Module', value: (fn) => fn[F.MODULE]},
    {title: 'Calls', value: (fn) => fn[F.CALLS], kind: 'number'},
    {title: 'Own instructions', value: (fn) => fn[F.INSTRUCTIONS], kind: 'number', of: sums.instructions},
    {title: 'with callees', value: (fn) => fn[F.ALL_INSTRUCTIONS], kind: 'number'},
    ...(hasTimes ? TIME_COLUMNS : []),
    {title: 'Own branches', value: (fn) => fn[F.BRANCHES], kind: 'number', of: hasTimes ? 0 : sums.branches},
    {title: 'with callees', value: (fn) => fn[F.ALL_BRANCHES], kind: 'number'},
  ].filter((column) => hasInstructions || !/nstruction/.test(column.title))
    .filter((column, i) => hasInstructions || i !== 3);

const EDGE_COLUMNS = [
  {title: 'From', value: (edge) => edge[0], kind: 'name'},
  {title: 'To', value: (edge) => edge[1], kind: 'name'},
  {title: 'Kind', value: (edge) => edge[2]},
  {title: 'Taken', value: (edge) => edge[3], kind: 'number', of: data.totals ? data.totals.taken : 0},
  {
    title: 'Not taken',
    value: (edge) => edge[2] === 'jcc' ? edge[4] : -1,
    kind: 'number',
    text: (edge) => edge[2] === 'jcc' ? number(edge[4]) : ''
  },
  {title: 'Source', value: (edge) => edge[5] || '', kind: 'name', text: (edge) => (edge[5] || '').replace(/^.*\//, '')},
];

/* What the numbers are of. */
const countsOf = (data.module ? `${data.module}: functions in it, edges from and to it. Exact counts of ` : 'Exact counts of ') +
  (data.range ? 'this part' : 'the whole trace');

const tables = {
  functions: {
    columns: FUNCTION_COLUMNS,
    rows: data.functions.filter((fn) => fn[F.CALLS] > 0),
    sort: 3,
    isUp: false,
    note:
      `${countsOf}. A call counts when it is entered. ` +
      'With callees: with all that it called, recursion counted once.' +
      (hasTimes ? ' Waiting: time in which the thread did not run.' : ''),
    pick: (fn) => {
      setSearch(fn[F.NAME], true);
      goToHit(1);
    },
    filter: (fn, text) => fn[F.NAME].toLowerCase().includes(text) || fn[F.MODULE].toLowerCase().includes(text)
  },
  edges: {
    columns: EDGE_COLUMNS,
    rows: data.edges,
    sort: 3,
    isUp: false,
    note: `The edges that were taken most. ${countsOf}.`,
    pick: (edge) => setSearch(edge[1].replace(/\+0x[0-9a-f]+$/, ''), false),
    filter: (edge, text) => edge[0].toLowerCase().includes(text) || edge[1].toLowerCase().includes(text)
  },
};

function makeHead(table, name) {
  const head = element('thead'), line = head.insertRow();
  table.columns.forEach((column, i) => {
    const cell = element('th', null, column.kind === 'number' ? 'number' : '');
    cell.scope = 'col';
    if (table.sort === i) cell.setAttribute('aria-sort', table.isUp ? 'ascending' : 'descending');
    cell.append(button(column.title, () => {
      table.isUp = table.sort === i ? !table.isUp : column.kind !== 'number';
      table.sort = i;
      fillTable(name);
    }));
    line.append(cell);
    if (column.of) line.append(element('th'));
  });
  return head;
}

function makeLine(table, row, most) {
  const line = element('tr');
  for (const column of table.columns) {
    const value = column.value(row), cell = line.insertCell();
    cell.className = column.kind || '';
    cell.textContent = column.text ? column.text(row) : column.kind === 'number' ? number(value) : value;
    if (column.kind === 'name') cell.title = value;
    if (!column.of) continue;
    const bar = element('span', null, 'share'), filled = element('i'), share = line.insertCell();
    filled.style.width = `${100 * value / Math.max(1, most.get(column))}%`;
    bar.append(filled);
    share.className = 'share-cell';
    share.append(bar, percent(value, column.of));
  }
  line.addEventListener('click', () => table.pick(row));
  return line;
}

function fillTable(name) {
  const table = tables[name], place = byId(name), text = search.text.toLowerCase(), column = table.columns[table.sort];
  const rows = text ? table.rows.filter((row) => table.filter(row, text)) : table.rows.slice();
  const sign = table.isUp ? 1 : -1, most = new Map();
  rows.sort((a, b) => {
    const one = column.value(a), other = column.value(b);
    return one < other ? -sign : one > other ? sign : 0;
  });
  for (const each of table.columns)
    if (each.of) most.set(each, table.rows.reduce((max, row) => Math.max(max, each.value(row)), 0));
  const made = element('table', null, 'data'), body = element('tbody');
  for (const row of rows.slice(0, ROWS_MAX)) body.append(makeLine(table, row, most));
  made.append(makeHead(table, name), body);
  const left = rows.length - ROWS_MAX;
  place.replaceChildren(
    element('div', table.note + (left > 0 ? ` ${number(left)} more: search for them.` : ''), 'note'), made);
  place.dataset.rows = rows.length;
}

/* ---- source ---- */

const codeByPlace = new Map(data.code.map((code) => [`${code.file} ${code.start}`, code]));
const codeOf = (fn) => codeByPlace.get(`${fn[F.FILE]} ${fn[F.ADDRESS]}`);
let shownCode = null;

function codeLine(cells, most) {
  const line = element('tr'), [count, label, text, isJump, arrows, note] = cells;
  const cell = element('td', count === null ? '' : count === 0 ? 'never' : number(count), 'count');
  if (count === 0) cell.classList.add('never');
  if (count) {
    const share = Math.round(100 * Math.log1p(count) / Math.log1p(most));
    cell.style.backgroundImage =
      `linear-gradient(to left, color-mix(in srgb, var(--heat) 38%, transparent) ${share}%, transparent ${share}%)`;
  }
  if (count && count > most / 2) line.classList.add('hot');
  if (isJump) line.classList.add('jump');
  line.append(cell, element('td', label, 'line'));
  if (arrows !== undefined) line.append(element('td', arrows, 'arrows'));
  line.append(element('td', text));
  if (note !== undefined) line.append(element('td', note, 'note'));
  return line;
}

/* Lines that are not shown are a dashed line. */
function sourceCells(code) {
  return code.lines.map(([line, count, text], i) => [count, line, text, i > 0 && code.lines[i - 1][0] !== line - 1]);
}

/* Beside each instruction, the arrows of the branches inside the function: two characters for a lane, of which lane 0 is
 * nearest to the code, and the head. Hotter arrows lie over the others. */
function arrowMargin(code) {
  const width = 2 * code.lanes + 1;
  const lines = code.instructions.map(() => new Array(code.lanes ? width : 0).fill(' '));
  for (const [from, to, , lane] of code.arrows.slice().reverse()) {
    const column = 2 * (code.lanes - 1 - lane), top = Math.min(from, to), bottom = Math.max(from, to);
    for (let row = top + 1; row < bottom; row++) lines[row][column] = '\u2502';
    for (const row of [top, bottom]) {
      lines[row].fill('\u2500', column + 1);
      lines[row][column] = row === top ? '\u256d' : '\u2570';
    }
    lines[to][width - 1] = '\u25ba';
  }
  return lines.map((line) => line.join(''));
}

/* What a branch did: taken and not taken, or where it went. */
function branchNote(branch) {
  if (!branch) return '';
  const [isConditional, taken, passed, targets, more] = branch;
  if (isConditional)
    return `taken ${number(taken)} (${percent(taken, taken + passed)}), not taken ${number(passed)}`;
  const words = targets.map(([place, count]) => targets.length > 1 ? `${place} ${percent(count, taken)}` : place);
  return `\u2192 ${words.join(', ')}${more ? `, ${number(more)} more` : ''}`;
}

function assemblyCells(code) {
  const margin = arrowMargin(code);
  return code.instructions.map(
    ([offset, count, text, , branch],
     i) => [count, `+0x${offset.toString(16)}`, text, code.cut && i > 0 && count !== code.instructions[i - 1][1],
            margin[i], branchNote(branch)]);
}

function fillCode() {
  const place = byId('code'), code = shownCode;
  if (!code) {
    place.replaceChildren(element(
      'div',
      data.code.length ? 'Choose a function.' :
                         'The code of this trace is not known: it has no symbols, or is not 64-bit code.',
      'note'));
    return;
  }
  const isSource = code.lines && code.lines.length && state.tab !== 'assembly',
        cells = isSource ? sourceCells(code) : assemblyCells(code);
  const head = element('div', null, 'head'), table = element('table'),
        most = cells.reduce((max, cell) => Math.max(max, cell[0] || 0), 1);
  head.append(
    element('b', code.name), element('span', isSource ? code.source : code.module, 'dim'),
    element('span', `${number(code.ran)} instructions`, 'dim'));
  if (code.lines && code.lines.length)
    head.append(button(isSource ? 'Assembly' : 'Source', () => setTab(isSource ? 'assembly' : 'source')));
  else
    head.append(element('span', 'no source was found', 'dim'));
  if (isSource && code.changed) head.append(element('span', 'the file was changed after the trace was made', 'dim'));
  if (!isSource && code.cut) head.append(element('span', 'long: only what ran is listed', 'dim'));
  head.append(button('Calls in the timeline', () => {
    setSearch(code.name, true);
    goToHit(1);
  }));
  for (const each of cells) table.append(codeLine(each, most));
  place.replaceChildren(head, table);
  place.dataset.function = code.name;
}

function showCode(code) {
  shownCode = code;
  setTab(state.tab === 'assembly' ? 'assembly' : 'source');
}

function fillSource() {
  const list = byId('list'), text = search.text.toLowerCase();
  const isFound = (code) => search.isExact ? code.name === search.text : code.name.toLowerCase().includes(text);
  const codes = data.code.filter((code) => !text || isFound(code));
  if (!shownCode || !codes.includes(shownCode)) shownCode = codes[0] || shownCode || null;
  list.replaceChildren(...codes.map((code) => {
    const item = element('div');
    item.role = 'option';
    item.setAttribute('aria-selected', String(code === shownCode));
    item.append(
      element('span', code.name), element('small', percent(code.ran, data.totals ? data.totals.instructions : 0)));
    item.title = code.name;
    item.addEventListener('click', () => showCode(code));
    return item;
  }));
  fillCode();
}
