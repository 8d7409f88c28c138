/** The table of keys. A row lasts as long as its key, so that it keeps the focus. */
export const keys: string = /* JavaScript */ String.raw`function rowOf(id) {
  const found = rows.get(id);
  if (found) return found;
  const key = element('button', { type: 'button', className: 'key' });
  const free = element('button', { type: 'button', className: 'free' }, 'Free …');
  const cells = ['', 'holder', 'held', 'left', 'token', 'waiting', ''].map((name) => {
    const cell = element('td', { className: name === 'token' ? 'token' : '' });
    if (name !== '') cell.dataset.label = name;
    return cell;
  });
  cells[0].append(key);
  cells[6].append(free);
  const made = { id, key, free, cells, row: element('tr', {}, ...cells) };
  key.addEventListener('click', () => {
    if (!expanded.delete(id)) expanded.add(id);
    show();
  });
  free.addEventListener('click', () => confirmFreeing(made));
  rows.set(id, made);
  return made;
}

function fill(made, entry) {
  const { key, holder, holders, here, template, backend, waiters } = entry;
  const others = holders ? ' and ' + (holders.length - 1) + ' more' : '';
  const [, who, held, left, token, waiting] = made.cells;
  made.entry = entry;
  write(made.key, several() ? backend + ' · ' + short(key) : short(key));
  made.key.title = template;
  made.key.setAttribute('aria-expanded', String(expanded.has(made.id)));
  write(who, holder ? nameOf(holder) + others + shareOf(holder) + (here && here.leads ? ' · leads' : '') : here ? 'this process' : 'nobody');
  const since = sinceOf(entry);
  write(held, duration(Number.isNaN(since) ? here && here.heldMs : Math.max(0, Date.parse(state.at) - since)));
  write(left, here && here.state !== 'held' ? here.state : duration(holder && holder.leftMs));
  left.className = here && here.state !== 'held' ? 'bad' : '';
  write(token, (here && here.fencingToken) || (holder && holder.fencingToken) || '–');
  write(waiting, String(waitingFor(entry)));
  waiting.className = waitingFor(entry) > 0 ? 'contended' : 'quiet';
  made.free.hidden = !holder;
  made.free.setAttribute('aria-label', 'Free ' + short(key) + ' …');
  showDetails(made, waiters);
}

function showDetails(made, waiters) {
  if (!expanded.has(made.id)) {
    if (made.details) made.details.remove();
    made.details = undefined;
    return;
  }
  const { backend, key, template, holder, holders } = made.entry;
  const past = [...troubles, ...state.history].filter((one) => one.backend === backend && one.key === key);
  past.sort((a, b) => (a.at < b.at ? 1 : -1));
  const cell = element('td', { className: 'details', colSpan: 7 });
  if (isCut(key)) cell.append(element('p', {}, element('code', { className: 'whole' }, visible(key))));
  cell.append(
    element('p', { className: 'quiet' }, 'template ' + short(template) + (holder ? ', owner ' + holder.owner : '')),
  );
  if (holders) {
    const all = holders.map((one) => element('li', {}, nameOf(one) + shareOf(one) + ', ' + duration(one.leftMs) + ' left'));
    cell.append(element('b', {}, 'Held by'), element('ol', {}, ...all));
  }
  const line = waiters.map((one) =>
    element(
      'li',
      {},
      nameOf(one) + shareOf(one) + (one.since ? ', ' + duration(Date.parse(state.at) - Date.parse(one.since)) : ''),
    ),
  );
  cell.append(
    element('b', {}, line.length > 0 ? 'Waiting, first come first' : 'Nobody waits on the server'),
    element('ol', {}, ...line),
  );
  if (past.length > 0)
    cell.append(element('b', {}, 'History'), element('ol', {}, ...past.slice(0, 30).map(eventLine)));
  const details = element('tr', {}, cell);
  if (made.details) made.details.replaceWith(details);
  made.details = details;
}

function place(body, wanted) {
  const focused = document.activeElement;
  wanted.forEach((row, index) => {
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] || null);
  });
  while (body.children.length > wanted.length) body.lastChild.remove();
  if (focused && focused.isConnected && document.activeElement !== focused) focused.focus();
}

function showKeys() {
  const text = byId('search').value;
  const entries = state.backends
    .flatMap(({ name, keys }) => keys.map((one) => ({ ...one, backend: name })))
    .filter(({ key }) => key.includes(text))
    .sort(ORDERS[byId('sort').value]);
  const present = new Set();
  const wanted = entries.flatMap((entry) => {
    const made = rowOf(JSON.stringify([entry.backend, entry.key]));
    present.add(made.id);
    fill(made, entry);
    return made.details ? [made.row, made.details] : [made.row];
  });
  place(document.querySelector('#keys tbody'), wanted);
  for (const id of [...rows.keys()]) if (!present.has(id)) rows.delete(id);
  const blind = state.backends.filter(({ lists }) => !lists).map(({ name }) => name);
  const notes = [
    entries.length > 0 ? '' : text === '' ? 'No key is held.' : 'No key that is held contains this.',
    state.backends.some(({ more }) => more) ? 'There are more keys: find one by a part of its name.' : '',
    blind.length > 0
      ? 'No server lists the keys of ' +
        blind.join(', ') +
        ': those of this process are shown. Find another by its whole name.'
      : '',
  ];
  write(byId('empty'), notes.filter(Boolean).join(' '));
  byId('empty').hidden = notes.every((note) => note === '');
  const [held, waiting] = [
    entries.filter(({ holder, here }) => holder || here).length,
    entries.reduce((sum, one) => sum + waitingFor(one), 0),
  ];
  write(byId('held'), held.toLocaleString() + (state.backends.some(({ more }) => more) ? '+' : ''));
  write(byId('waiting'), waiting.toLocaleString());
}
`;
