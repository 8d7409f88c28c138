const SALE = 'sales/42';
const CROWD = 50;
const SHOWN_ORDERS = 12;
const INTERVAL_MS = 500;
const byId = (id) => document.getElementById(id);

/** Shows the sale as the database has it, hence also what other processes sold. */
async function showSale() {
  const [sale, orders] = await Promise.all([fetchJson(SALE), fetchJson(`${SALE}/orders`)]);
  const oversold = Math.max(0, sale.stock + orders.length - sale.pieces);
  byId('stock').textContent = sale.stock;
  byId('sold').textContent = orders.length;
  byId('oversold').textContent = oversold === 0 ? '' : `— ${oversold} of them twice`;
  byId('pieces').replaceChildren(
    ...Array.from({ length: Math.min(400, sale.stock + orders.length) }, (_, at) =>
      makeElement('i', '', at < sale.stock ? 'left' : at < sale.pieces ? 'sold' : 'twice'),
    ),
  );
  byId('orders').replaceChildren(...orders.slice(-SHOWN_ORDERS).toReversed().map(makeRow));
}

function makeRow({ id, buyer, fencingToken }) {
  const row = makeElement('tr');
  row.append(makeElement('td', id), makeElement('td', buyer), makeElement('td', fencingToken ?? 'none'));
  return row;
}

/** Makes an element whose text is never taken for markup. */
function makeElement(name, text = '', className = '') {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

async function fetchJson(path) {
  return (await fetch(path)).json();
}

async function postJson(path, body = {}) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
  return { ok: response.ok, body: await response.json() };
}

function sendPurchase(buyer) {
  return postJson(`${SALE}/${byId('way').value}`, { buyer });
}

async function buyOne() {
  const { ok, body } = await sendPurchase(`guest-${crypto.randomUUID().slice(0, 6)}`);
  return ok ? `order ${body.id} for ${body.buyer}` : body.message;
}

async function buyAsCrowd() {
  const crowd = crypto.randomUUID().slice(0, 4);
  const answers = await Promise.all(Array.from({ length: CROWD }, (_, at) => sendPurchase(`crowd-${crowd}-${at + 1}`)));
  return `${answers.filter(({ ok }) => ok).length} of ${CROWD} buyers got one`;
}

async function restock() {
  const { ok, body } = await postJson(`${SALE}/restock`);
  return ok ? `${body.stock} pieces again` : body.message;
}

/** Runs an action of the user, and shows its answer. */
async function showAnswer(action) {
  byId('answer').textContent = '…';
  byId('answer').textContent = await action().catch(String);
}

byId('shop').addEventListener('submit', (submitted) => {
  submitted.preventDefault();
  void showAnswer(buyOne);
});
byId('crowd').addEventListener('click', () => void showAnswer(buyAsCrowd));
byId('restock').addEventListener('click', () => void showAnswer(restock));

for (;;) {
  await showSale().catch(() => (byId('stock').textContent = '–'));
  await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
}
