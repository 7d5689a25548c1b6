// SPDX-License-Identifier: Apache-2.0
// work.js AMOUNT: what JavaScript programs do all day, for bench/process: objects, strings, sorting, closures, JSON, regular
// expressions, typed arrays. Prints one line for each, always the same for the same AMOUNT.
'use strict';
const amount = Number(process.argv[2]);
let state = 1;

function random(limit) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >>> 16) % limit;
}

// Words: building strings, counting in a map, sorting with a function.
function words(count) {
  const lines = [], counts = new Map();
  for (let i = 0; i < count; i++) lines.push(`item${random(3000)} ${String.fromCharCode(97 + random(26)).repeat(random(4) + 1)}`);
  for (const word of lines.join('\n').split(/\s+/)) counts.set(word, (counts.get(word) || 0) + 1);
  const order = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
  return `${order.length} ${order[0]} ${counts.get(order[0])}`;
}

// Shapes: methods of classes.
class Square { constructor(side) { this.side = side; } area() { return this.side * this.side; } }
class Circle { constructor(radius) { this.radius = radius; } area() { return 3 * this.radius * this.radius; } }
class Pair { constructor(one, other) { this.one = one; this.other = other; } area() { return this.one.area() + this.other.area(); } }
function dispatch(count) {
  const shapes = [new Square(3), new Circle(2)];
  while (shapes.length < 200)
    shapes.push([() => new Square(random(9)), () => new Circle(random(9)),
      () => new Pair(shapes[random(shapes.length)], shapes[random(shapes.length)])][random(3)]());
  let total = 0;
  for (let i = 0; i < count; i++) total = (total + shapes[i % 200].area()) % 1000003;
  return total;
}

// Records: to JSON and back, filtered and mapped.
function records(count) {
  const list = [];
  for (let i = 0; i < count; i++) list.push({id: i, name: `name ${random(999)}`, tags: [random(9), random(9)], weight: random(400) / 4});
  return JSON.parse(JSON.stringify(list)).filter(one => /7|2$/.test(one.name)).map(one => one.weight * one.tags[0]).reduce((a, b) => a + b, 0);
}

// Primes: a loop over a typed array.
function sieve(limit) {
  const isComposite = new Uint8Array(limit + 1);
  let count = 0;
  for (let i = 2; i <= limit; i++) {
    if (isComposite[i]) continue;
    count++;
    for (let j = i * i; j <= limit; j += i) isComposite[j] = 1;
  }
  return count;
}

console.log('words', words(100 * amount));
console.log('dispatch', dispatch(10000 * amount));
console.log('records', records(60 * amount));
console.log('sieve', sieve(8000 * amount));
