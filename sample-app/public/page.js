const SALE_PATH = 'sales/42';
const CROWD_SIZE = 50;
const MAX_SHOWN_ORDERS = 12;
const REFRESH_MS = 500;
const byId = (id) => document.getElementById(id);

/** Shows the sale as the database has it, including the orders of other processes. */
async function showSale() {
  const [sale, orders] = await Promise.all([fetchJson(SALE_PATH), fetchJson(`${SALE_PATH}/orders`)]);
  const oversoldCount = Math.max(0, sale.stock + orders.length - sale.pieces);
  byId('stock').textContent = sale.stock;
  byId('sold').textContent = orders.length;
  byId('oversold').textContent = oversoldCount === 0 ? '' : `— ${oversoldCount} of them twice`;
  byId('pieces').replaceChildren(
    ...Array.from({ length: Math.min(400, sale.stock + orders.length) }, (_, index) =>
      makeElement('i', '', index < sale.stock ? 'left' : index < sale.pieces ? 'sold' : 'twice'),
    ),
  );
  byId('orders').replaceChildren(...orders.slice(-MAX_SHOWN_ORDERS).toReversed().map(makeRow));
}

function makeRow({ id, buyer, fencingToken }) {
  const row = makeElement('tr');
  row.append(makeElement('td', id), makeElement('td', buyer), makeElement('td', fencingToken ?? 'none'));
  return row;
}

/** Makes an element. Its text is never parsed as markup. */
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
  return postJson(`${SALE_PATH}/${byId('way').value}`, { buyer });
}

async function buyOne() {
  const { ok, body } = await sendPurchase(`guest-${crypto.randomUUID().slice(0, 6)}`);
  return ok ? `order ${body.id} for ${body.buyer}` : body.message;
}

async function buyAsCrowd() {
  const crowd = crypto.randomUUID().slice(0, 4);
  const answers = await Promise.all(
    Array.from({ length: CROWD_SIZE }, (_, index) => sendPurchase(`crowd-${crowd}-${index + 1}`)),
  );
  return `${answers.filter(({ ok }) => ok).length} of ${CROWD_SIZE} buyers got one`;
}

async function restock() {
  const { ok, body } = await postJson(`${SALE_PATH}/restock`);
  return ok ? `${body.stock} pieces again` : body.message;
}

async function runAndShowAnswer(action) {
  byId('answer').textContent = '…';
  byId('answer').textContent = await action().catch(String);
}

byId('shop').addEventListener('submit', (event) => {
  event.preventDefault();
  void runAndShowAnswer(buyOne);
});
byId('crowd').addEventListener('click', () => void runAndShowAnswer(buyAsCrowd));
byId('restock').addEventListener('click', () => void runAndShowAnswer(restock));

for (;;) {
  await showSale().catch(() => (byId('stock').textContent = '–'));
  await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
}
