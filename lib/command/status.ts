import { type KeyState, LockConfigurationError, LockService } from '../core/index.js';
import { openBackend, getSqlDatabaseName } from './open-by-url.js';
import type { CommandOptions, Report } from './report.js';
import { checkTables } from './tables.js';

const DEFAULT_LIMIT = 100;

export async function readStatus(options: CommandOptions): Promise<Report> {
  const limit = Number(options.limit ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1)
    throw new LockConfigurationError('--limit is a whole number above 0', 'limit');
  const isSql = getSqlDatabaseName(options) !== undefined;
  if (isSql) await checkTables(options);
  const service = new LockService(await openBackend(options));
  try {
    const heldKeys = await listHeldKeys(service, options.prefix ?? '', limit);
    const count = `${heldKeys.length} keys are held${heldKeys.length === limit ? ', or more' : ''}`;
    const lines = [...(isSql ? ['both tables are there'] : []), count, ...heldKeys.map(describeKey)];
    return { isGood: true, lines, data: { held: heldKeys } };
  } finally {
    await service.close();
  }
}

async function listHeldKeys(service: LockService, prefix: string, limit: number): Promise<KeyState[]> {
  const { store, name } = service.backend;
  if (!store.keys) throw new LockConfigurationError(`${name} cannot list keys`, 'url');
  const heldKeys: KeyState[] = [];
  for await (const page of store.keys(prefix)) {
    for (const key of page) {
      const state = await service.look(key);
      if (state.holder ?? state.holders) heldKeys.push(state);
      if (heldKeys.length === limit) return heldKeys;
    }
  }
  return heldKeys;
}

function describeKey({ key, holder, holders, waiters }: KeyState): string {
  const holderTexts = (holders ?? (holder ? [holder] : [])).map(({ host, pid, label, leftMs, fencingToken }) =>
    [
      `${label ?? host ?? 'somebody'}${pid ? ` (pid ${pid})` : ''}`,
      leftMs === undefined ? '' : `for ${(leftMs / 1000).toFixed(1)} s more`,
      fencingToken === undefined ? '' : `token ${fencingToken}`,
    ]
      .filter(Boolean)
      .join(', '),
  );
  const waitersText = waiters && waiters.length > 0 ? `; ${waiters.length} wait` : '';
  return `  ${JSON.stringify(key)}: ${holderTexts.join(' and ')}${waitersText}`;
}
