import { assertKey } from '../contract/key.js';
import { isSignedBy, type Signature, signText } from './process-identity.js';

/** Acquisition of a key, as a signed text describes it to other processes. The process that acquired the key signs. */
export interface SignedLock {
  /** Name of the backend. */
  readonly backend: string;
  /** Key with the namespace. */
  readonly key: string;
  readonly fencingToken: bigint;
  readonly owner: string;
}

/**
 * Start of a signed text: `lock1` for a sequencer, `ticket1` for a ticket. The start is signed as well, so that no text
 * can pass for one of another kind.
 */
export type SignedTextKind = 'lock1' | 'ticket1';

/** 34,000 characters hold the longest key with each of its characters escaped. */
const SIGNED_TEXT_PATTERN = /^(?<kind>\w+)\.(?<fields>[\w-]{1,34000})$/u;
const NAME_PATTERN = /^[\w:.@/ ~-]{1,100}$/u;
const TOKEN_PATTERN = /^[1-9]\d{0,18}$/u;
const PUBLIC_KEY_PATTERN = /^[\w-]{43}(?:\.[\w-]{43})?$/u;
const SIGNATURE_PATTERN = /^[\w-]{86}$/u;

export function signLock(kind: SignedTextKind, lock: SignedLock): string {
  return formatSignedText(kind, lock, signText(createTextToSign(kind, lock)));
}

/** Reads a text from an untrusted sender. Returns `undefined` for a text that `signLock` did not write. */
export function readSignedLock(kind: SignedTextKind, text: unknown): SignedLock | undefined {
  const groups = typeof text === 'string' ? SIGNED_TEXT_PATTERN.exec(text)?.groups : undefined;
  if (groups?.['kind'] !== kind) return undefined;
  try {
    const { lock, signature } = parseFields(JSON.parse(Buffer.from(groups['fields'] ?? '', 'base64url').toString()));
    // Only the one text that `formatSignedText` writes is accepted, not one with other spaces.
    const isCanonical = formatSignedText(kind, lock, signature) === text;
    return isCanonical && isSignedBy(lock.owner, createTextToSign(kind, lock), signature) ? lock : undefined;
  } catch {
    return undefined;
  }
}

function formatSignedText(kind: SignedTextKind, lock: SignedLock, { publicKey, signature }: Signature): string {
  const fields = JSON.stringify([...fieldsOf(lock), publicKey, signature]);
  return `${kind}.${Buffer.from(fields).toString('base64url')}`;
}

function createTextToSign(kind: SignedTextKind, lock: SignedLock): string {
  return JSON.stringify([kind, ...fieldsOf(lock)]);
}

function fieldsOf({ backend, key, fencingToken, owner }: SignedLock): string[] {
  return [backend, key, String(fencingToken), owner];
}

/** @throws TypeError or LockConfigurationError when `fields` are not those of a lock */
function parseFields(fields: unknown): { readonly lock: SignedLock; readonly signature: Signature } {
  if (!Array.isArray(fields)) throw new TypeError('no list');
  const [backend, key, token, owner, publicKey, signature]: unknown[] = fields;
  assertKey(key);
  return {
    lock: {
      backend: assertMatch(NAME_PATTERN, backend),
      key,
      fencingToken: BigInt(assertMatch(TOKEN_PATTERN, token)),
      owner: assertMatch(NAME_PATTERN, owner),
    },
    signature: {
      publicKey: assertMatch(PUBLIC_KEY_PATTERN, publicKey),
      signature: assertMatch(SIGNATURE_PATTERN, signature),
    },
  };
}

function assertMatch(pattern: RegExp, field: unknown): string {
  if (typeof field === 'string' && pattern.test(field)) return field;
  throw new TypeError('not of the form');
}
