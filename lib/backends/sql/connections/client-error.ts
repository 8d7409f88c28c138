/** Where clients keep the error of the driver: TypeORM, Drizzle, Sequelize, and Prisma by way of its driver adapters. */
const WRAPPED_IN = ['driverError', 'cause', 'original', 'meta', 'driverAdapterError'];

/** Drivers have a text, a number, or both. `node:sqlite` has `errcode`. */
const CODES = ['code', 'errno', 'errcode', 'originalCode'];

/** The codes in the error of any client, and in the errors that it wraps. */
export function codesIn(error: unknown, depth = 0): string[] {
  if (typeof error !== 'object' || error === null || depth > WRAPPED_IN.length) return [];
  const own = CODES.map((name): unknown => Reflect.get(error, name)).filter((code) => code !== undefined);
  return [...own.map(String), ...WRAPPED_IN.flatMap((name) => codesIn(Reflect.get(error, name), depth + 1))];
}
