import { EventList } from './event-list.js';
import { buy, restock, sendCrowd } from './shop.js';
import { Timeline } from './timeline.js';

const SALE = 42;
const KEY = 'lock_sale_42';
const byId = (id) => document.getElementById(id);
const events = new EventList(byId('events'));
const timeline = new Timeline(byId('timeline'));

/** The process this page comes from. */
let here = 'this process';

const source = new EventSource('events');
const listen = (type, show) => source.addEventListener(type, ({ data }) => show(JSON.parse(data)));
source.addEventListener('open', () => (byId('connection').className = 'dot live'));
source.addEventListener('error', () => (byId('connection').className = 'dot gone'));
listen('hello', ({ process, recent }) => {
  here = `${process.label} (pid ${process.pid})`;
  byId('process-name').textContent = `${here} · locks in ${process.backend}, orders in ${process.orders}`;
  byId('unsafe').hidden = !process.unsafe;
  byId('restocks').textContent = process.restocks
    ? 'fills sale 7, once a minute in the whole cluster'
    : `refused: a lock of ${process.backend} ends with its connection, and keeps no key closed`;
  events.clear();
  recent.forEach(showEvent);
});
listen('happened', showEvent);
listen('leader', showLeader);
listen('sales', (sales) => showStock(sales.find(({ id }) => id === SALE)));

function showEvent(event) {
  events.add(event);
  if (event.key !== KEY) return;
  timeline.add(event);
  if (event.waiters !== undefined) showWaiters(event.waiters);
  if (event.kind === 'acquired') showHolder('held', event.token);
  else if (event.kind === 'released') showHolder('free', event.token);
  else if (event.kind === 'jeopardy' || event.kind === 'lost') showHolder(event.kind, event.token);
}

function showStock({ pieces, stock, sold }) {
  const twice = Math.max(0, stock + sold - pieces);
  byId('stock').textContent = stock;
  byId('sold').textContent = sold;
  byId('oversold').hidden = twice === 0;
  byId('oversold').textContent = `— ${twice} of them twice`;
  const cells = Array.from({ length: Math.min(400, stock + sold) }, (_, at) => {
    const cell = document.createElement('i');
    if (at < stock) cell.className = 'left';
    else if (at >= pieces) cell.className = 'over';
    return cell;
  });
  byId('pieces').replaceChildren(...cells);
}

function showLeader({ token, holder, problem }) {
  const elsewhere = holder ? `${holder.label} (pid ${holder.pid}) leads` : (problem ?? 'nobody leads');
  byId('leader').textContent = token ? `${here} leads` : elsewhere;
  byId('term').textContent = token ?? 'known where it leads';
}

/** A free lock still shows its last holder. */
function showHolder(state, token) {
  byId('lock-state').dataset.state = byId('lock-state').textContent = state;
  byId('holder-name').textContent = state === 'free' ? 'last holder' : 'holder';
  byId('holder').textContent = here;
  byId('token').textContent = token;
}

function showWaiters(count) {
  byId('waiters').textContent = count;
  byId('queue').replaceChildren(...Array.from({ length: Math.min(count, 100) }, () => document.createElement('i')));
}

function newBuyer() {
  byId('buyer').value = `guest-${crypto.randomUUID().slice(0, 6)}`;
}

async function buyOne() {
  byId('answer').textContent = await buy(SALE, byId('buyer').value);
  newBuyer();
}

async function stampede(button) {
  button.disabled = true;
  byId('answer').textContent = await sendCrowd(SALE);
  button.disabled = false;
}

byId('buy').addEventListener('submit', (submitted) => {
  submitted.preventDefault();
  void buyOne();
});
byId('stampede').addEventListener('click', ({ target }) => void stampede(target));
byId('restock').addEventListener('click', () => {
  void restock(SALE).then((answer) => (byId('answer').textContent = answer));
});

newBuyer();
