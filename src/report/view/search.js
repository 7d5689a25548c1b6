/* SPDX-License-Identifier: Apache-2.0
 *
 * Searching functions by name: all their calls are highlighted, and one is gone to after the other.
 */
const HITS_MAX = 200000;

const search = {
  text: '',
  matches: null,
  hits: [],
  calls: 0,
  shown: 0,
  at: -1,
  isExact: false
};

/* Every block of the functions that were found, in the order of threads and time. */
function findHits() {
  search.hits = [];
  search.shown = 0;
  for (const lane of lanes) {
    const found = [];
    for (const row of lane.rows)
      for (let i = 0; row && i < row.count; i++)
        if (search.matches[row.fn[i]]) {
          search.shown += callsOf(row, i) === 1 ? 1 : 0;
          if (search.hits.length + found.length < HITS_MAX) found.push({lane, row, i});
        }
    found.sort((a, b) => a.row.start[0][a.i] - b.row.start[0][b.i] || a.row.depth - b.row.depth);
    search.hits = search.hits.concat(found);
  }
}

function setSearch(text, isExact) {
  search.text = text;
  search.isExact = isExact;
  search.at = -1;
  search.hits = [];
  search.matches = null;
  search.calls = 0;
  if (byId('search').value !== text) byId('search').value = text;
  if (text) {
    const wanted = text.toLowerCase();
    search.matches = new Uint8Array(data.functions.length);
    data.functions.forEach((fn, i) => {
      const isMatch = isExact ? fn[F.NAME] === text : fn[F.NAME].toLowerCase().includes(wanted);
      search.matches[i] = isMatch ? 1 : 0;
      search.calls += isMatch ? fn[F.CALLS] : 0;
    });
    findHits();
  }
  tellFound();
  fillTab();
  redraw();
}

function tellFound() {
  const found = byId('found');
  if (!search.text)
    found.textContent = '';
  else if (!search.calls)
    found.textContent = 'no such function';
  else if (!search.hits.length)
    found.textContent = `${number(search.calls)} calls, none of them in this timeline`;
  else
    found.textContent = (search.at >= 0 ? `${number(search.at + 1)} of ${number(search.hits.length)}; ` : '') +
      `${number(search.calls)} calls`;
}

function goToHit(step) {
  if (!search.hits.length) return;
  search.at = search.at < 0 ? (step > 0 ? 0 : search.hits.length - 1) :
                              (search.at + step + search.hits.length) % search.hits.length;
  const hit = search.hits[search.at], size = hit.row.end[view.axis][hit.i] - hit.row.start[view.axis][hit.i];
  setTab('timeline');
  view.selected = hit;
  showDetails();
  /* Stay at this scale if the call can be seen well in it. */
  const share = size / (view.to - view.from);
  if (share > 0.02 && share < 0.8) {
    const middle = (hit.row.start[view.axis][hit.i] + hit.row.end[view.axis][hit.i]) / 2,
          half = (view.to - view.from) / 2;
    if (!hit.lane.isOpen) toggleLane(hit.lane);
    if (hit.row.start[view.axis][hit.i] < view.from || hit.row.end[view.axis][hit.i] > view.to)
      show(middle - half, middle + half);
    showRow(hit.lane, hit.row.depth);
    redraw();
  } else
    showBlock(hit.lane, hit.row, hit.i, 0.3);
  tellFound();
}

function listenSearch() {
  byId('search').addEventListener('input', (event) => setSearch(event.target.value, false));
  byId('find').addEventListener('submit', (event) => {
    event.preventDefault();
    goToHit(1);
  });
  byId('search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.shiftKey) {
      event.preventDefault();
      goToHit(-1);
    }
  });
  byId('previous').addEventListener('click', () => goToHit(-1));
}
