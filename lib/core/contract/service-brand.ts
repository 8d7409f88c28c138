/** Property that marks every `LockService`. The symbol is the same in all copies of the package. */
export const SERVICE_BRAND: unique symbol = Symbol.for('nestjs-distributed-lock/service');
