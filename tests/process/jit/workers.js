// SPDX-License-Identifier: Apache-2.0
// Four workers, maps and exceptions: each compiles, and gives up what it compiled.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function work(number) {
  const map = new Map();
  let sum = 0;
  for (let i = 0; i < 20000; i++) {
    map.set(i * 31 + number, 'value ' + i);
    try {
      if (i % 7 === 0)
        throw new Error('seven ' + i);
      sum += map.get(i * 31 + number).length;
    } catch (error) {
      sum += error.message.length;
    }
  }
  for (const [key, value] of map)
    sum = (sum + (key ^ value.length)) | 0;
  return sum;
}
if (isMainThread) {
  let sum = 0, left = 4;
  for (let i = 0; i < 4; i++)
    new Worker(__filename, { workerData: i }).on('message', (value) => {
      sum = (sum + value) | 0;
      if (--left === 0)
        console.log('sum ' + sum);
    });
} else {
  parentPort.postMessage(work(workerData));
}
