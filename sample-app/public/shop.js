/** Buys one piece and says in a line what came of it. */
export async function buy(sale, buyer) {
  const { ok, body } = await post(`sales/${sale}/purchases`, { buyer });
  return ok ? `order ${body.id} for ${body.buyer}, fencing token ${body.fencingToken ?? 'none'}` : body.message;
}

/** Fifty buyers at once. */
export async function sendCrowd(sale) {
  const { ok, body } = await post(`sales/${sale}/crowd`, {});
  return ok ? `${body.bought} of ${body.buyers} buyers got one` : body.message;
}

export async function restock(sale) {
  const { ok, body } = await post(`sales/${sale}/restock`, {});
  return ok ? `${body.stock} pieces again` : body.message;
}

async function post(url, body) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { ok: response.ok, body: await response.json() };
  } catch (error) {
    return { ok: false, body: { message: String(error) } };
  }
}
