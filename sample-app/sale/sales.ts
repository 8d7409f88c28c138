import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { currentLock, type LockHandle, Locked } from 'nestjs-distributed-lock';
import type { EntityManager } from 'typeorm';
import { Order } from '../database/order.entity.js';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { Payment } from './payment.js';

@Injectable()
export class Sales {
  constructor(
    private readonly transactions: Transactions,
    private readonly payment: Payment,
  ) {}

  /** @throws NotFoundException */
  find(saleId: number): Promise<Sale> {
    return this.transactions.run((manager) => findSale(manager, saleId));
  }

  findOrders(saleId: number): Promise<Order[]> {
    return this.transactions.run((manager) => manager.find(Order, { where: { saleId }, order: { id: 'asc' } }));
  }

  /** Counts the orders that exceed the number of pieces. */
  countOversold(saleId: number): Promise<number> {
    return this.transactions.run(async (manager) => {
      const { pieces, stock } = await findSale(manager, saleId);
      return Math.max(0, stock + (await manager.countBy(Order, { saleId })) - pieces);
    });
  }

  /**
   * Sells one piece, for a caller that holds the lock of the sale. The process may freeze at any line, lose the lock and go on
   * later. Hence it reads the stock under the fence, too: from then on the database refuses all former holders. When this
   * process writes, either the stock is unchanged, or the process is a former holder itself, and is refused.
   * @throws StaleFenceError when another holder has the lock by now; nothing was purchase
   */
  async sell(saleId: number, buyer: string, lock: LockHandle): Promise<Order> {
    const runFenced = <T>(work: (manager: EntityManager) => Promise<T>): Promise<T> =>
      this.transactions.runFenced(`sale:${saleId}`, lock, work);

    const { sale, order } = await runFenced((manager) => readSale(manager, saleId, buyer));
    if (order) return order;
    await this.payment.take(saleId, buyer);
    return runFenced((manager) => writeOrder(manager, { sale, buyer, token: lock.fencingToken }));
  }

  /** Acquires the lock of the sale, and sells one piece. */
  @Locked('lock_sale_:saleId')
  async buy(saleId: number, buyer: string): Promise<Order> {
    const lock = currentLock();
    if (!lock) throw new Error('@Locked runs nothing without its lock');
    return this.sell(saleId, buyer, lock);
  }
}

/**
 * Reads the sale, and the order that the buyer has already, if any.
 * @throws NotFoundException
 * @throws ConflictException when the sale is sold out and the buyer has no order
 */
export async function readSale(
  manager: EntityManager,
  saleId: number,
  buyer: string,
): Promise<{ sale: Sale; order: Order | null }> {
  const sale = await findSale(manager, saleId);
  const order = await manager.findOneBy(Order, { saleId, buyer });
  if (!order && sale.stock === 0) throw new ConflictException(`sale ${saleId} is sold out`);
  return { sale, order };
}

/** Writes the order, and the stock by `sale` as it was read. Without a lock, two callers at a time may write the same stock. */
export async function writeOrder(
  manager: EntityManager,
  purchase: { sale: Sale; buyer: string; token: bigint | null },
): Promise<Order> {
  const { sale, buyer, token } = purchase;
  await manager.update(Sale, { id: sale.id }, { stock: sale.stock - 1 });
  const fencingToken = token === null ? null : String(token);
  return manager.save(manager.create(Order, { saleId: sale.id, buyer, fencingToken }));
}

async function findSale(manager: EntityManager, id: number): Promise<Sale> {
  const sale = await manager.findOneBy(Sale, { id });
  if (!sale) throw new NotFoundException(`there is no sale ${id}`);
  return sale;
}
