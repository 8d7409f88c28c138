import { elements } from './script-elements.js';
import { keys } from './script-keys.js';

/** Reads the state every two seconds while somebody looks, and trouble as it comes. */
const reading = /* JavaScript */ String.raw`function show() {
  showKeys();
  byId('backends').replaceChildren(
    ...state.backends.map(({ name, kind, guarantee, health }) => {
      const chip = element(
        'li',
        { title: health.detail || '' },
        name + ' · ' + kind + ', ' + guarantee + ' · ' + health.status,
      );
      chip.dataset.state = health.status;
      return chip;
    }),
  );
  const templates = state.backends.flatMap((backend) =>
    backend.templates.map((one) => ({ ...one, backend: backend.name })),
  );
  document.querySelector('#templates tbody').replaceChildren(
    ...templates.slice(0, 100).map((one) => {
      const cells = [
        several() ? one.backend + ' · ' + one.template : one.template,
        one.acquired,
        duration(one.meanWaitMs),
        duration(one.longestWaitMs),
        duration(one.meanHoldMs),
        one.timedOut,
        one.lost,
      ];
      return element(
        'tr',
        {},
        ...cells.map((text, index) =>
          element('td', { className: index === 0 ? 'key' : index > 4 && text > 0 ? 'bad' : '' }, String(text)),
        ),
      );
    }),
  );
  for (const [id, field] of [
    ['lost', 'lost'],
    ['timed-out', 'timedOut'],
  ]) {
    const sum = templates.reduce((total, one) => total + one[field], 0);
    write(byId(id), String(sum));
    byId(id).className = sum > 0 ? 'bad' : '';
  }
  list('history', state.history, 'Nothing happened here in the last five minutes.');
  showTroubles();
  byId('templates').hidden = templates.length === 0;
  byId('no-template').hidden = templates.length > 0;
  write(byId('process'), state.host + ':' + state.pid);
}

function list(id, events, otherwise) {
  const lines = events.map(eventLine);
  byId(id).replaceChildren(...(lines.length > 0 ? lines : [element('li', { className: 'quiet' }, otherwise)]));
}

function showTroubles() {
  list('troubles', troubles, 'Nothing was lost and nobody gave up.');
}

function notify(text, isGood = false) {
  write(byId('notice'), text);
  byId('notice').className = isGood ? 'good' : '';
  byId('notice').hidden = text === '';
}

async function refresh() {
  clearTimeout(due);
  const began = performance.now();
  const search = byId('search').value;
  const mine = (asked = {});
  try {
    const response = await fetch(base + '/state?search=' + encodeURIComponent(search), { cache: 'no-store' });
    if (!response.ok) throw new Error('The application answers ' + response.status);
    const read = await response.json();
    if (mine !== asked) return;
    state = read;
    troubles.splice(0, Infinity, ...state.troubles);
    show();
    const errors = state.backends.filter(({ error }) => error).map(({ name, error }) => name + ': ' + error);
    if (errors.length > 0) notify(errors.join('\n'));
    else if (byId('notice').className === '') notify('');
  } catch (error) {
    if (mine === asked) notify(error.message);
  }
  // A server that takes long is left in peace for longer.
  due = setTimeout(() => document.hidden || refresh(), Math.max(2000, 5 * (performance.now() - began)));
}

async function confirmFreeing({ entry, row }) {
  const { backend, key, holder } = entry;
  const dialog = byId('confirm');
  write(byId('confirm-key'), several() ? backend + ' · ' + visible(key) : visible(key));
  write(
    byId('confirm-holder'),
    nameOf(holder) +
      ' holds it' +
      (holder.since ? ', since ' + new Date(holder.since).toLocaleTimeString() : '') +
      '.',
  );
  dialog.returnValue = 'cancel';
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener('close', closed, { once: true }));
  if (dialog.returnValue !== 'free') return;
  const body = JSON.stringify({ backend, key, owner: holder.owner });
  const response = await fetch(base + '/evict', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) notify(short(key) + ' is taken from ' + nameOf(holder) + '.', true);
  else notify('Not freed: ' + (answer.message || response.status));
  if (!row.isConnected) byId('search').focus();
  await refresh();
}

function connect() {
  const source = new EventSource(base + '/events');
  const says = (text, value) => {
    write(byId('connection'), text);
    byId('connection').dataset.state = value;
  };
  source.onopen = () => says('live', 'live');
  source.onerror = () => says('no connection', 'lost');
  source.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.times > 1) troubles.shift();
    troubles.unshift(event);
    if (state) showTroubles();
  };
}

byId('search').addEventListener('input', () => {
  if (state) showKeys();
  clearTimeout(due);
  due = setTimeout(refresh, 250);
});
byId('sort').addEventListener('change', () => state && showKeys());
document.addEventListener('visibilitychange', () => document.hidden || refresh());
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input, select') || byId('confirm').open) return;
  event.preventDefault();
  byId('search').focus();
});
connect();
refresh();
`;

export const script: string = `${elements}
${keys}
${reading}`;
