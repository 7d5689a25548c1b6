// SPDX-License-Identifier: Apache-2.0
// An HTTP server for the tests of lbr record -p and lbr run -p: node compiles and patches its code while requests come.
// /work/N answers with a number that the client knows, /count with the number of requests so far.
'use strict';
const http = require('http');

let count = 0;

function work(number) {
  let hash = number | 0;
  const texts = [];
  for (let i = 0; i < 1000; i++) {
    hash = Math.imul(hash ^ i, 16777619);
    if (i % 10 === 0)
      texts.push({text: 'item ' + (hash >>> 0)});
  }
  for (const {text} of texts)
    if (!text.startsWith('item '))
      throw new Error('wrong text: ' + text);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

const server = http.createServer((request, response) => {
  const words = request.url.split('/');
  const answer = words[1] === 'count' ? String(count) : work(Number(words[2]));
  count += words[1] === 'work';
  response.setHeader('Content-Length', answer.length + 1);
  response.end(answer + '\n');
});

server.keepAliveTimeout = 600000;
server.listen(Number(process.argv[2]), '127.0.0.1');
