/** Symbol of lock services, the same in all copies of the package. */
export const SERVICE_BRAND: unique symbol = Symbol.for('nestjs-distributed-lock/service');
