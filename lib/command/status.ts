import { errorText, failureKindOf, type KeyState, LockConfigurationError, LockService } from '../core/index.js';
import { escapeInvisible } from '../inspector/visible-text.js';
import { loadBackendFactory, getSqlDatabaseName } from './open-by-url.js';
import type { CommandOptions, Report } from './report.js';
import { checkTables } from './tables.js';

const DEFAULT_LIMIT = 100;

export async function readStatus(options: CommandOptions): Promise<Report> {
  const limit = Number(options.limit ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1)
    throw new LockConfigurationError('--limit is a whole number above 0', 'limit');
  const isSql = getSqlDatabaseName(options) !== undefined;
  if (isSql) await checkTables(options);
  const service = new LockService(await loadBackendFactory(options));
  try {
    const { held, unreadable } = await listKeys(service, options.prefix ?? '', limit);
    const hasReachedLimit = held.length + unreadable.length === limit;
    const lines = [
      ...(isSql ? ['both tables are there'] : []),
      `${held.length} keys are held${hasReachedLimit ? ', or more' : ''}`,
      ...held.map(describeKey),
      ...unreadable.map(({ error }) => `  ${escapeInvisible(error)}`),
    ];
    return { hasSucceeded: unreadable.length === 0, lines, data: { held, unreadable } };
  } finally {
    await service.close();
  }
}

interface ListedKeys {
  readonly held: KeyState[];
  /** Keys that cannot be read although the server answers, such as keys that another program wrote. */
  readonly unreadable: { readonly key: string; readonly error: string }[];
}

async function listKeys(service: LockService, prefix: string, limit: number): Promise<ListedKeys> {
  const { store, name } = service.backend;
  if (!store.keys) throw new LockConfigurationError(`${name} cannot list keys`, 'url');
  const listedKeys: ListedKeys = { held: [], unreadable: [] };
  const { held, unreadable } = listedKeys;
  for await (const page of store.keys(prefix)) {
    for (const key of page) {
      try {
        const state = await service.look(key);
        if (state.holder ?? state.holders) held.push(state);
      } catch (error) {
        if (failureKindOf(error) !== 'value') throw error;
        unreadable.push({ key, error: errorText(error) });
      }
      if (held.length + unreadable.length === limit) return listedKeys;
    }
  }
  return listedKeys;
}

function describeKey({ key, holder, holders, waiters }: KeyState): string {
  const holderTexts = (holders ?? (holder ? [holder] : [])).map(({ host, pid, label, leftMs, fencingToken }) =>
    [
      `${escapeInvisible(label ?? host ?? 'somebody')}${pid ? ` (pid ${pid})` : ''}`,
      leftMs === undefined ? '' : `for ${(leftMs / 1000).toFixed(1)} s more`,
      fencingToken === undefined ? '' : `token ${fencingToken}`,
    ]
      .filter(Boolean)
      .join(', '),
  );
  const waitersText = waiters && waiters.length > 0 ? `; ${waiters.length} wait` : '';
  return `  ${escapeInvisible(JSON.stringify(key))}: ${holderTexts.join(' and ')}${waitersText}`;
}
