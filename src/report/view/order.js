/* SPDX-License-Identifier: Apache-2.0
 *
 * Other orders of the same calls. The timeline has them in the order of time. Left-heavy adds up calls with the same
 * stack and puts the largest to the left. Sandwich does that for one function: its callers above, what it called below.
 * Both are lanes as those of the timeline are, so that all else works in them, too.
 */
const ORDERS = ['time', 'heavy', 'sandwich'];

/* A stack's row in data.stacks. */
const S = {
  CALLER: 0,
  FUNCTION: 1,
  CALLS: 2,
  BRANCHES: 3,
  INSTRUCTIONS: 4,
  REST_BRANCHES: 5,
  REST_INSTRUCTIONS: 6,
  TIME: 7,
  WAITED: 8,
  REST_TIME: 9,
  REST_WAITED: 10
};

/* What counts for a stack: branches, instructions, time; and waiting, which is no axis. */
const STACK_SIZES = [[S.BRANCHES, S.REST_BRANCHES], [S.INSTRUCTIONS, S.REST_INSTRUCTIONS]].concat(
  data.times ? [[S.TIME, S.REST_TIME], [S.WAITED, S.REST_WAITED]] : []);
const WAITING = 3;
const noSizes = () => STACK_SIZES.map(() => 0);

/* What ran in each stack with all that it called. */
const stackSums = STACK_SIZES.map(([own, rest]) => {
  const sums = data.stacks.map((stack) => stack[own] + stack[rest]);
  for (let i = sums.length - 1; i >= 0; i--)
    if (data.stacks[i][S.CALLER] >= 0) sums[data.stacks[i][S.CALLER]] += sums[i];
  return sums;
});

/* ---- trees ---- */

const makeNode = (fn) => ({fn, calls: 0, size: noSizes(), children: new Map()});

function childOf(node, fn) {
  if (!node.children.has(fn)) node.children.set(fn, makeNode(fn));
  return node.children.get(fn);
}

function addStack(node, i, hasCalls) {
  node.calls += hasCalls ? data.stacks[i][S.CALLS] : 0;
  stackSums.forEach((sums, axis) => {
    node.size[axis] += sums[i];
  });
}

/* All stacks, or those that begin with an outermost call of a function. */
function calledTree(fn) {
  const top = makeNode(fn), nodes = new Array(data.stacks.length).fill(null);
  data.stacks.forEach((stack, i) => {
    const caller = stack[S.CALLER] >= 0 ? nodes[stack[S.CALLER]] : null;
    if (caller)
      nodes[i] = childOf(caller, stack[S.FUNCTION]);
    else if (fn === undefined)
      nodes[i] = childOf(top, stack[S.FUNCTION]);
    else if (stack[S.FUNCTION] === fn)
      nodes[i] = top;
    if (nodes[i]) addStack(nodes[i], i, true);
    if (nodes[i] && !caller && fn === undefined) addStack(top, i, false);
  });
  return top;
}

/* Who called a function: calls from itself are left out, as what it called has them. */
function callerTree(fn) {
  const top = makeNode(fn), isInside = new Uint8Array(data.stacks.length);
  data.stacks.forEach((stack, i) => {
    const above = stack[S.CALLER];
    isInside[i] = stack[S.FUNCTION] === fn || (above >= 0 && isInside[above]) ? 1 : 0;
    if (stack[S.FUNCTION] !== fn || (above >= 0 && isInside[above])) return;
    let node = top;
    addStack(node, i, true);
    for (let at = above; at >= 0; at = data.stacks[at][S.CALLER]) {
      node = childOf(node, data.stacks[at][S.FUNCTION]);
      addStack(node, i, true);
    }
  });
  return top;
}

/* ---- rows ---- */

const heavyAxis = hasTimes ? TIME : hasInstructions ? 1 : 0;

/* Places the children of a node from its start on, the largest first. */
function placeTree(top, isTopShown) {
  const rows = [], todo = [{node: top, depth: isTopShown ? 0 : -1, start: noSizes()}];
  while (todo.length) {
    const {node, depth, start} = todo.pop();
    if (depth >= 0) (rows[depth] = rows[depth] || []).push({node, start});
    const at = start.slice();
    const children =
      [...node.children.values()].sort((a, b) => b.size[heavyAxis] - a.size[heavyAxis] || a.fn - b.fn);
    for (const child of children) {
      todo.push({node: child, depth: depth + 1, start: at.slice()});
      child.size.forEach((size, axis) => {
        at[axis] += size;
      });
    }
  }
  return rows;
}

function makeRow(list, depth) {
  list.sort((a, b) => a.start[heavyAxis] - b.start[heavyAxis] || a.start[0] - b.start[0]);
  return {
    depth,
    count: list.length,
    start: AXES.map((name, axis) => Float64Array.from(list, (each) => each.start[axis])),
    end: AXES.map((name, axis) => Float64Array.from(list, (each) => each.start[axis] + each.node.size[axis])),
    fn: Uint32Array.from(list, (each) => each.node.fn),
    calls: null,
    busy: null,
    bits: null,
    sums: Float64Array.from(list, (each) => each.node.calls),
    waits: hasTimes ? Float64Array.from(list, (each) => each.node.size[WAITING]) : null
  };
}

function makeSumLane(name, top, isTopShown, isUpward) {
  const lists = placeTree(top, isTopShown), last = lists.length - 1;
  const rows = lists.map((list, depth) => makeRow(list, isUpward ? last - depth : depth));
  if (isUpward) rows.reverse();
  return {
    stream: {number: -2, branches: top.size[0], instructions: top.size[1], time: top.size[TIME], end: {how: ''}},
    rows,
    isOpen: true,
    isSum: true,
    name,
    top: 0,
    isDead: false,
    range: AXES.map((unit, axis) => [0, top.size[axis]])
  };
}

const heavyLane = (() => {
  let lane = null;
  return () => lane = lane || makeSumLane('all threads, left-heavy', calledTree(), false, false);
})();

function sandwichLanes(fn) {
  const name = data.functions[fn][F.NAME];
  return [
    makeSumLane(`callers of ${name}`, callerTree(fn), true, true),
    makeSumLane(`${name} and what it called`, calledTree(fn), true, false)
  ];
}

/* ---- choosing ---- */

const order = {
  name: 'time',
  fn: -1
};

/* The function that is looked at: the selected one, the one that is searched for, or the one that ran most. */
function chosenFunction() {
  if (view.selected) return view.selected.row.fn[view.selected.i];
  const found = search.matches ? search.matches.indexOf(1) : -1;
  if (found >= 0) return found;
  const column = hasInstructions ? F.INSTRUCTIONS : F.BRANCHES;
  return data.functions.reduce((best, fn, i) => best < 0 || fn[column] > data.functions[best][column] ? i : best, -1);
}

function orderNote() {
  if (order.name === 'time') return '';
  const left = data.stacksLeftOut ? ` ${number(data.stacksLeftOut)} small stacks count for their callers.` : '';
  if (order.name === 'heavy') return `All threads. Calls with the same callers are added up.${left}`;
  return `Callers above, called below. Calls of the function by itself are below.${left}`;
}

function setOrder(name, fn) {
  if (!ORDERS.includes(name) || (name !== 'time' && !data.stacks.length)) return;
  const wanted = name === 'sandwich' ? (fn >= 0 ? fn : chosenFunction()) : -1;
  if (name === 'sandwich' && wanted < 0) return;
  order.name = name;
  order.fn = wanted;
  useLanes(name === 'time' ? timeLanes : name === 'heavy' ? [heavyLane()] : sandwichLanes(wanted));
  for (const each of ORDERS) byId(`order-${each}`).setAttribute('aria-pressed', String(each === name));
  byId('order-note').textContent = orderNote();
  view.selected = view.hover = null;
  showTip(null);
  showDetails();
  if (search.matches) findHits();
  setTab('timeline');
  scroll.scrollTop = 0;
  if (name === 'time')
    showBegin();
  else
    show(...whole());
}
