/** Properties in which TypeORM, Drizzle, Sequelize and Prisma's driver adapters keep the error of the driver. */
const WRAPPED_ERROR_PROPERTIES = ['driverError', 'cause', 'original', 'meta', 'driverAdapterError'];

/** Properties in which drivers keep an error's code, as text or as a number. `node:sqlite` uses `errcode`. */
const CODE_PROPERTIES = ['code', 'errno', 'errcode', 'originalCode'];

/**
 * Returns the codes of an error, and of the errors that it wraps.
 * @param depth number of errors around this one, which is limited because an error may contain itself
 */
export function findErrorCodes(error: unknown, depth = 0): string[] {
  if (typeof error !== 'object' || error === null || depth > WRAPPED_ERROR_PROPERTIES.length) return [];
  const ownCodes = CODE_PROPERTIES.map((name): unknown => Reflect.get(error, name)).filter(
    (code) => code !== undefined,
  );
  return [
    ...ownCodes.map(String),
    ...WRAPPED_ERROR_PROPERTIES.flatMap((name) => findErrorCodes(Reflect.get(error, name), depth + 1)),
  ];
}
