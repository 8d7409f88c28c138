/** Messages of etcd's API, by their field numbers: https://etcd.io/docs/v3.4/dev-guide/api_reference_v3/ */
import { encode, Message } from './protobuf.js';

export const METHOD = {
  txn: '/etcdserverpb.KV/Txn',
  range: '/etcdserverpb.KV/Range',
  watch: '/etcdserverpb.Watch/Watch',
  grant: '/etcdserverpb.Lease/LeaseGrant',
  keepAlive: '/etcdserverpb.Lease/LeaseKeepAlive',
  revoke: '/etcdserverpb.Lease/LeaseRevoke',
  status: '/etcdserverpb.Maintenance/Status',
  authenticate: '/etcdserverpb.Auth/Authenticate',
} as const;

const SORT_ASCENDING = 1;
const SORT_DESCENDING = 2;
const SORT_BY_CREATION = 2;

export interface OldestOrYoungestQuery {
  readonly key: string;
  readonly end: string;
  readonly which: 'oldest' | 'youngest';
  readonly maxCreateRevision?: bigint;
}

/** Range of keys from `key` up to, not including, `end`. */
export interface KeyRange {
  readonly key: string;
  readonly end: string;
  readonly limit?: number;
  /**
   * Order and content. `age`: keys with their values, the oldest first. `names by age`: keys alone, the oldest first.
   * `name`: keys alone, by name.
   */
  readonly by: 'age' | 'names by age' | 'name';
}

export type Step =
  | { readonly get: string }
  | { readonly get: OldestOrYoungestQuery }
  | { readonly list: KeyRange }
  | { readonly put: string; readonly value: string; readonly lease: bigint }
  | { readonly remove: string };

/**
 * Condition of a transaction. `createRevision: 0n` means that the key does not exist. With `end`, it means that no key
 * from `key` up to, not including, `end` exists.
 */
export type Condition =
  | { readonly key: string; readonly end?: string; readonly createRevision: bigint }
  | { readonly key: string; readonly modRevision: bigint };

/** Transaction that carries out `steps` if all conditions of `when` hold, and else `otherwise`. */
export interface Transaction {
  readonly when?: readonly Condition[];
  readonly steps: readonly Step[];
  readonly otherwise?: readonly Step[];
}

export function encodeTransaction({ when = [], steps, otherwise = [] }: Transaction): Buffer {
  return encode(
    ...when.map((condition) => [1, encodeCondition(condition)] as const),
    ...steps.map((step) => [2, encodeStep(step)] as const),
    ...otherwise.map((step) => [3, encodeStep(step)] as const),
  );
}

/**
 * Encodes a condition of equality. Field 2 tells which revision is compared: that of the creation, or that of the last
 * write.
 */
function encodeCondition(condition: Condition): Buffer {
  return 'createRevision' in condition
    ? encode([2, 1], [3, condition.key], [5, condition.createRevision], [64, condition.end])
    : encode([2, 2], [3, condition.key], [6, condition.modRevision]);
}

function encodeStep(step: Step): Buffer {
  if ('put' in step) return encode([2, encode([1, step.put], [2, step.value], [3, step.lease])]);
  if ('list' in step) {
    const { key, end, limit, by } = step.list;
    const [order, target] = by === 'name' ? [] : [SORT_ASCENDING, SORT_BY_CREATION];
    return encode([1, encode([1, key], [2, end], [3, limit], [5, order], [6, target], [8, by !== 'age'])]);
  }
  if ('remove' in step) return encode([3, encode([1, step.remove])]);
  if (typeof step.get === 'string') return encode([1, encode([1, step.get])]);
  const { key, end, which, maxCreateRevision } = step.get;
  const order = which === 'oldest' ? SORT_ASCENDING : SORT_DESCENDING;
  return encode([1, encode([1, key], [2, end], [3, 1], [5, order], [6, SORT_BY_CREATION], [13, maxCreateRevision])]);
}

export interface KeyValue {
  readonly key: string;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly value: string;
  /** Lease with which the key ends; 0 for none. */
  readonly lease: bigint;
}

export interface TransactionOutcome {
  readonly revision: bigint;
  /** Term of the leader that is known to the member that answered. */
  readonly term: bigint;
  /** Whether all conditions held. */
  readonly succeeded: boolean;
  /** Entry that each `get` step found; `undefined` where there is none. Not meant for `list` steps. */
  readonly firstKeyValues: readonly (KeyValue | undefined)[];
  /** Decodes and returns all entries of each step's result. */
  readonly readKeyValuesByStep: () => readonly (readonly KeyValue[])[];
}

export function parseOutcome(reply: Message): TransactionOutcome {
  const header = reply.message(1);
  return {
    revision: header?.integer(3) ?? 0n,
    term: header?.integer(4) ?? 0n,
    succeeded: reply.flag(2),
    firstKeyValues: reply.messages(3).map((response) => {
      const first = response.message(1)?.message(2);
      return first && parseKeyValue(first);
    }),
    readKeyValuesByStep: () =>
      reply.messages(3).map((response) => (response.message(1)?.messages(2) ?? []).map(parseKeyValue)),
  };
}

function parseKeyValue(message: Message): KeyValue {
  return {
    key: message.text(1),
    createRevision: message.integer(2),
    modRevision: message.integer(3),
    value: message.text(5),
    lease: message.integer(6),
  };
}
