import { Payment } from '../../sample-app/sale/payment.js';
import { createShop } from './create-shop.js';
import type { BackendName } from './lock-backends.js';
import type { ShopMessage } from './shop-message.js';

// The stampede starts this process as its child. It leaves nothing behind when the stampede dies.
if (!process.connected) process.exit();
process.once('disconnect', () => process.exit());

try {
  const app = await createShop(process.argv[2] as BackendName, process.env);
  reportPayments(app.get(Payment, { strict: false }));
  await app.listen(0, '127.0.0.1');
  sendMessage({ kind: 'open', url: await app.getUrl() });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

/** Tells the stampede of each payment before it is taken. The process has the lock then, and has read the stock. */
function reportPayments(payment: Payment): void {
  const take = payment.take.bind(payment);
  payment.take = (saleId, buyer) => {
    sendMessage({ kind: 'paying' });
    return take(saleId, buyer);
  };
}

function sendMessage(message: ShopMessage): void {
  process.send?.(message);
}
