import {
  assertOneOf,
  LockConfigurationError,
  type PollingOptions,
  refuseOption,
  shownOption,
} from '../../core/index.js';

/** The options of all strategies. */
export interface CommonOptions extends Pick<PollingOptions, 'patienceMs'> {
  /**
   * Name of the table. Write `schema.name` for a schema, on MySQL a database, other than that of the connection.
   * @default 'distributed_lock'
   */
  tableName?: string;
  /**
   * Whether to create the table if it is missing. If not, create it in a migration: the documentation has the
   * statements.
   * @default false
   */
  synchronize?: boolean;
  /** Milliseconds to wait for the answer to one statement. Silence beyond it ends the connection. @default 1_000 */
  requestTimeoutMs?: number;
}

interface NumberRange {
  readonly description: string;
  readonly includes: (value: number) => boolean;
}

const ABOVE_0: NumberRange = { description: 'above 0', includes: (value) => value > 0 };
const AT_LEAST_0: NumberRange = { description: 'of 0 or more', includes: (value) => value >= 0 };
const WHOLE_ABOVE_0: NumberRange = {
  description: 'above 0, and whole',
  includes: (value) => Number.isInteger(value) && value > 0,
};
const SERVER_TIMEOUT_RANGE: NumberRange = {
  description: 'from 1 to 2147483647',
  includes: (value) => value >= 1 && value <= 2 ** 31 - 1,
};
/** Marks options that are checked where they are used. */
const UNCHECKED = undefined;

const COMMON_OPTIONS = { strategy: UNCHECKED, tableName: UNCHECKED, synchronize: UNCHECKED, patienceMs: AT_LEAST_0 };
const TIMEOUT_OPTIONS = { requestTimeoutMs: ABOVE_0, connectTimeoutMs: ABOVE_0 };

const OPTIONS_BY_STRATEGY: Readonly<Record<string, Readonly<Record<string, NumberRange | undefined>>>> = {
  lease: {
    ...COMMON_OPTIONS,
    ...TIMEOUT_OPTIONS,
    reapIdleAfterMs: ABOVE_0,
    pollMs: ABOVE_0,
    columns: UNCHECKED,
    abandonedAfterMs: ABOVE_0,
  },
  row: { ...COMMON_OPTIONS, ...TIMEOUT_OPTIONS, poolSize: WHOLE_ABOVE_0 },
  session: {
    ...COMMON_OPTIONS,
    requestTimeoutMs: SERVER_TIMEOUT_RANGE,
    sessionTtlMs: SERVER_TIMEOUT_RANGE,
    pollMs: ABOVE_0,
  },
};

/** @throws LockConfigurationError for an unknown strategy or option, and for a number out of range */
export function assertOptions(strategy: string, options: object, connectionOptionNames: readonly string[]): void {
  assertOneOf('strategy', strategy, Object.keys(OPTIONS_BY_STRATEGY));
  const knownOptions = OPTIONS_BY_STRATEGY[strategy] ?? {};
  for (const [option, value] of Object.entries(options)) {
    if (connectionOptionNames.includes(option)) continue;
    if (!Object.hasOwn(knownOptions, option)) {
      const names = [...connectionOptionNames, ...Object.keys(knownOptions)].join(', ');
      refuseOption(option, `is no option of strategy ${strategy}; it has ${names}`);
    }
    const range = knownOptions[option];
    if (!range || value === undefined || (typeof value === 'number' && range.includes(value))) continue;
    refuseOption(option, `must be a number ${range.description}; it was ${shownOption(value)}`);
  }
}

/** @throws LockConfigurationError that names the databases with this strategy */
export function refuseStrategy(strategy: 'row' | 'session', reason: string): never {
  throw new LockConfigurationError(`strategy '${strategy}' needs PostgreSQL, MySQL or MariaDB; ${reason}`, 'strategy');
}
