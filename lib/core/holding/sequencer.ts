import { assertKey } from '../contract/key.js';
import { isSignedBy, type Signature, signText } from './process-identity.js';

/**
 * Name of one acquisition of a key. A holder sends it to other servers with its requests, as in Chubby:
 * https://research.google/pubs/pub27897/. It grants no right.
 */
export interface Sequencer {
  /** Name of the backend. */
  readonly backend: string;
  /** Key with the namespace. */
  readonly key: string;
  readonly fencingToken: bigint;
  readonly owner: string;
}

/**
 * Result of a check. `valid`: that acquisition still has the key. `stale`: it has lost or released the key for good.
 * `unknown`: the text is no sequencer, or one of another backend or key.
 */
export type SequencerState = 'valid' | 'stale' | 'unknown';

/** 34,000 characters hold the longest key with each of its characters escaped. */
const SEQUENCER_PATTERN = /^lock1\.(?<fields>[\w-]{1,34000})$/u;
const NAME_PATTERN = /^[\w:.@/ ~-]{1,100}$/u;
const TOKEN_PATTERN = /^[1-9]\d{0,18}$/u;
const PUBLIC_KEY_PATTERN = /^[\w-]{43}$/u;
const SIGNATURE_PATTERN = /^[\w-]{86}$/u;

export function formatSequencer(sequencer: Sequencer): string {
  return formatSigned(sequencer, signText(signedTextOf(sequencer)));
}

/**
 * Reads a text from an untrusted sender. Returns `undefined` for a text that `LockHandle.sequencer` did not write. Does
 * not check whether the owner still has the key, as `LockService.checkSequencer` does.
 */
export function readSequencer(text: unknown): Sequencer | undefined {
  const fields = typeof text === 'string' ? SEQUENCER_PATTERN.exec(text)?.groups?.['fields'] : undefined;
  if (fields === undefined) return undefined;
  try {
    const { sequencer, signature } = parseFields(JSON.parse(Buffer.from(fields, 'base64url').toString()));
    // Only the one text that `formatSigned` writes is accepted, not one with other spaces.
    const isCanonical = formatSigned(sequencer, signature) === text;
    return isCanonical && isSignedBy(sequencer.owner, signedTextOf(sequencer), signature) ? sequencer : undefined;
  } catch {
    return undefined;
  }
}

function formatSigned(sequencer: Sequencer, { publicKey, signature }: Signature): string {
  const fields = JSON.stringify([...signedFieldsOf(sequencer), publicKey, signature]);
  return `lock1.${Buffer.from(fields).toString('base64url')}`;
}

function signedTextOf(sequencer: Sequencer): string {
  return JSON.stringify(signedFieldsOf(sequencer));
}

function signedFieldsOf({ backend, key, fencingToken, owner }: Sequencer): string[] {
  return [backend, key, String(fencingToken), owner];
}

/** @throws TypeError or LockConfigurationError when `fields` are not those of a sequencer */
function parseFields(fields: unknown): { readonly sequencer: Sequencer; readonly signature: Signature } {
  if (!Array.isArray(fields)) throw new TypeError('no list');
  const [backend, key, token, owner, publicKey, signature]: unknown[] = fields;
  assertKey(key);
  return {
    sequencer: {
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
