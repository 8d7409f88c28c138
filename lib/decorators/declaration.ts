/** The prototype that a method is declared on, and its name. */
export interface Declaration {
  readonly target: object;
  readonly name: string | symbol;
}

export type Method = (...args: never[]) => unknown;

export function isMethod(value: unknown): value is Method {
  return typeof value === 'function';
}

/** `SaleService.buy`, for messages. */
export function labelOf({ target, name }: Declaration): string {
  return `${target.constructor.name}.${String(name)}`;
}
