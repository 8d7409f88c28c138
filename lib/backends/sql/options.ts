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
   * `schema.name` is in another schema, on MySQL in another database, than that of the connection.
   * @default 'distributed_lock'
   */
  tableName?: string;
  /**
   * Creates the table where it is missing. Else create it in a migration: the documentation has the statements.
   * @default false
   */
  synchronize?: boolean;
  /** How long to wait for the answer to one statement. Silence beyond it ends the connection. @default 1_000 */
  requestTimeoutMs?: number;
}

interface Kind {
  readonly words: string;
  readonly fits: (value: number) => boolean;
}

const ABOVE_0: Kind = { words: 'above 0', fits: (value) => value > 0 };
const FROM_0: Kind = { words: 'of 0 or more', fits: (value) => value >= 0 };
const WHOLE: Kind = { words: 'above 0, and whole', fits: (value) => Number.isInteger(value) && value > 0 };
/** Servers count in these. */
const INT_32: Kind = { words: 'from 1 to 2147483647', fits: (value) => value >= 1 && value <= 2 ** 31 - 1 };
/** Checked where it is used. */
const ANY = undefined;

const COMMON = { strategy: ANY, tableName: ANY, synchronize: ANY, patienceMs: FROM_0 };
const TIMEOUTS = { requestTimeoutMs: ABOVE_0, connectTimeoutMs: ABOVE_0 };

const STRATEGIES: Readonly<Record<string, Readonly<Record<string, Kind | undefined>>>> = {
  lease: { ...COMMON, ...TIMEOUTS, reapIdleAfterMs: ABOVE_0, pollMs: ABOVE_0, columns: ANY, abandonedAfterMs: ABOVE_0 },
  row: { ...COMMON, ...TIMEOUTS, poolSize: WHOLE },
  session: { ...COMMON, requestTimeoutMs: INT_32, sessionTtlMs: INT_32, pollMs: ABOVE_0 },
};

/**
 * @param ofConnection names of the options that say how to connect
 * @throws LockConfigurationError for an unknown strategy or option, and for a number out of range
 */
export function assertOptions(strategy: string, options: object, ofConnection: readonly string[]): void {
  assertOneOf('strategy', strategy, Object.keys(STRATEGIES));
  const known = STRATEGIES[strategy] ?? {};
  for (const [option, value] of Object.entries(options)) {
    if (ofConnection.includes(option)) continue;
    if (!Object.hasOwn(known, option)) {
      const names = [...ofConnection, ...Object.keys(known)].join(', ');
      refuseOption(option, `is no option of strategy ${strategy}; it has ${names}`);
    }
    const kind = known[option];
    if (!kind || value === undefined || (typeof value === 'number' && kind.fits(value))) continue;
    refuseOption(option, `must be a number ${kind.words}; it was ${shownOption(value)}`);
  }
}

/** @throws LockConfigurationError naming the databases that have the strategy */
export function refuseStrategy(strategy: 'row' | 'session', why: string): never {
  throw new LockConfigurationError(`strategy '${strategy}' needs PostgreSQL, MySQL or MariaDB; ${why}`, 'strategy');
}
