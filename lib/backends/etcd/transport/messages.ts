/** Messages of etcd's API, by their field numbers: https://etcd.io/docs/v3.4/dev-guide/api_reference_v3/ */
import { encode, Message } from './protobuf.js';

export const METHOD = {
  txn: '/etcdserverpb.KV/Txn',
  watch: '/etcdserverpb.Watch/Watch',
  grant: '/etcdserverpb.Lease/LeaseGrant',
  keepAlive: '/etcdserverpb.Lease/LeaseKeepAlive',
  revoke: '/etcdserverpb.Lease/LeaseRevoke',
  status: '/etcdserverpb.Maintenance/Status',
  authenticate: '/etcdserverpb.Auth/Authenticate',
} as const;

const ASCENDING = 1;
const DESCENDING = 2;
const BY_CREATION = 2;

/** One of all keys from `key` up to, not including, `end`. */
export interface OneOf {
  readonly key: string;
  readonly end: string;
  readonly which: 'oldest' | 'youngest';
  /** Counts only keys created up to this revision. */
  readonly createdUpTo?: bigint;
}

/** All keys from `key` up to, not including, `end`. */
export interface Range {
  readonly key: string;
  readonly end: string;
  /** @default all */
  readonly limit?: number;
  /** `age`: with their values, the oldest first. `names by age`: these alone. `name`: the same, in their own order. */
  readonly by: 'age' | 'names by age' | 'name';
}

export type Step =
  | { readonly get: string }
  | { readonly get: OneOf }
  | { readonly list: Range }
  | { readonly put: string; readonly value: string; readonly lease: bigint }
  | { readonly remove: string };

/** A condition of a transaction. A key that is not there has the revision 0, and so has every key of an empty range. */
export type Condition =
  | { readonly key: string; readonly end?: string; readonly createdAt: bigint }
  | { readonly key: string; readonly modifiedAt: bigint };

export interface Transaction {
  readonly when?: readonly Condition[];
  readonly steps: readonly Step[];
  /** Carried out instead where a condition does not hold. */
  readonly otherwise?: readonly Step[];
}

export function transaction({ when = [], steps, otherwise = [] }: Transaction): Buffer {
  return encode(
    ...when.map((condition) => [1, compare(condition)] as const),
    ...steps.map((step) => [2, operation(step)] as const),
    ...otherwise.map((step) => [3, operation(step)] as const),
  );
}

function compare(condition: Condition): Buffer {
  return 'createdAt' in condition
    ? encode([2, 1], [3, condition.key], [5, condition.createdAt], [64, condition.end])
    : encode([2, 2], [3, condition.key], [6, condition.modifiedAt]);
}

function operation(step: Step): Buffer {
  if ('put' in step) return encode([2, encode([1, step.put], [2, step.value], [3, step.lease])]);
  if ('list' in step) {
    const { key, end, limit, by } = step.list;
    const [order, target] = by === 'name' ? [] : [ASCENDING, BY_CREATION];
    return encode([1, encode([1, key], [2, end], [3, limit], [5, order], [6, target], [8, by !== 'age'])]);
  }
  if ('remove' in step) return encode([3, encode([1, step.remove])]);
  if (typeof step.get === 'string') return encode([1, encode([1, step.get])]);
  const { key, end, which, createdUpTo } = step.get;
  const order = which === 'oldest' ? ASCENDING : DESCENDING;
  return encode([1, encode([1, key], [2, end], [3, 1], [5, order], [6, BY_CREATION], [13, createdUpTo])]);
}

export interface KeyValue {
  readonly key: string;
  readonly createdAt: bigint;
  readonly modifiedAt: bigint;
  readonly value: string;
}

export interface Outcome {
  /** The store's, once the transaction was carried out. */
  readonly revision: bigint;
  /** The term of the leader that the member which answered knows of. */
  readonly term: bigint;
  /** Whether all conditions held. */
  readonly succeeded: boolean;
  /** One for each step, in their order: for a `get`, the key or nothing. */
  readonly found: readonly (KeyValue | undefined)[];
  /** For each step, all that it found. */
  readonly ranges: () => readonly (readonly KeyValue[])[];
}

export function readOutcome(reply: Message): Outcome {
  const header = reply.message(1);
  return {
    revision: header?.integer(3) ?? 0n,
    term: header?.integer(4) ?? 0n,
    succeeded: reply.flag(2),
    found: reply.messages(3).map((response) => {
      const first = response.message(1)?.message(2);
      return first && keyValue(first);
    }),
    ranges: () => reply.messages(3).map((response) => (response.message(1)?.messages(2) ?? []).map(keyValue)),
  };
}

function keyValue(message: Message): KeyValue {
  return {
    key: message.text(1),
    createdAt: message.integer(2),
    modifiedAt: message.integer(3),
    value: message.text(5),
  };
}
