import { parseArgs } from 'node:util';
import { errorText, isLockError } from '../core/index.js';
import { examineServer } from './doctor.js';
import type { CommandOptions, Report } from './report.js';
import { assertTableNames, createTables, reportTableStatements } from './tables.js';
import { readStatus } from './status.js';

const USAGE = `Usage: nestjs-distributed-lock <command> [options]

  sql --database <name>   prints the statements that create the tables
  migrate --url <url>     creates the tables that are missing
  status --url <url>      tells which keys are held, by whom and for how long
  doctor --url <url>      tells how good the locks of a server are, and what to change

  --database  postgres, mysql (also for MariaDB) or sqlite
  --url       redis://…, postgres://…, mysql://…, mariadb://…, sqlite:<file>, etcd://<host>:2379,
              zookeeper://<host>:2181 or memcached://<host>:11211; else the variable LOCK_URL
  --table     the table of the locks; else distributed_lock
  --fence     the table of the fences; else distributed_lock_fence
  --prefix    status: the beginning of the keys
  --limit     status: how many keys at most; else 100
  --json      prints JSON

It ends with 0 when all is well, with 1 when something is wrong, and with 2 when it was called wrongly.`;

const COMMANDS: Readonly<Record<string, (options: CommandOptions) => Promise<Report>>> = {
  sql: reportTableStatements,
  migrate: createTables,
  status: readStatus,
  doctor: examineServer,
};

const OPTIONS = {
  database: { type: 'string' },
  url: { type: 'string' },
  table: { type: 'string' },
  fence: { type: 'string' },
  prefix: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export interface CommandOutcome {
  readonly code: 0 | 1 | 2;
  readonly output: string;
  readonly errorOutput?: string;
}

/** Never rejects. */
export async function runCommand(args: string[], env: NodeJS.ProcessEnv): Promise<CommandOutcome> {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    const [name = '', ...surplusArguments] = positionals;
    if (values.help === true) return { code: 0, output: USAGE };
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command || surplusArguments.length > 0) return { code: 2, output: '', errorOutput: USAGE };
    const options = { ...values, url: values.url ?? env['LOCK_URL'] };
    assertTableNames(options, name === 'sql' ? options.database : options.url);
    return await createOutcome(await command(options), values.json === true);
  } catch (error) {
    return { code: isUsageError(error) ? 2 : 1, output: '', errorOutput: errorText(error) };
  }
}

async function createOutcome({ hasSucceeded, lines, data }: Report, isJson: boolean): Promise<CommandOutcome> {
  const output = isJson
    ? JSON.stringify(data, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    : lines.join('\n');
  return { code: hasSucceeded ? 0 : 1, output };
}

/**
 * Returns whether the caller gave a wrong option. Errors of backends name their options as this command does.
 */
function isUsageError(error: unknown): boolean {
  if (isLockError(error, 'LOCK_CONFIGURATION'))
    return ['url', 'database', 'table', 'fence', 'limit', 'file'].includes(error.option);
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && code.startsWith('ERR_PARSE_ARGS');
}
