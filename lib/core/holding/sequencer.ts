import { assertKey } from '../contract/key.js';
import { isSignedBy, type Signature, signed } from './process-identity.js';

/**
 * Which acquisition of which key this is, for those whom a holder asks to act for it, as Chubby's clients do:
 * https://research.google/pubs/pub27897/. Data, and no right to anything: who can reach the backend needs none.
 */
export interface Sequencer {
  /** The backend's name. */
  readonly backend: string;
  /** With the namespace. */
  readonly key: string;
  readonly fencingToken: bigint;
  readonly owner: string;
}

/**
 * `valid`: the backend keeps the key for that very acquisition, so nobody else has had it since. `stale`: it does not,
 * and never will again. `unknown`: what was shown is no sequencer, or one of another backend or key.
 */
export type SequencerState = 'valid' | 'stale' | 'unknown';

/** The version, and room for the longest key there is, all of it escaped. */
const FORM = /^lock1\.(?<fields>[\w-]{1,34000})$/u;
const NAME = /^[\w:.@/ ~-]{1,100}$/u;
const TOKEN = /^[1-9]\d{0,18}$/u;
const PUBLIC_KEY = /^[\w-]{43}$/u;
const SIGNATURE = /^[\w-]{86}$/u;

/** Signed by this process, which the owner names: whoever changes the token is found out. */
export function writeSequencer(sequencer: Sequencer): string {
  return textOf(sequencer, signed(contentOf(sequencer)));
}

/**
 * `undefined` for whatever `LockHandle.sequencer` did not write: it may come from anybody. Whoever has an owner of
 * their own can write one; `LockService.checkSequencer` asks whether that owner has the key.
 */
export function readSequencer(text: unknown): Sequencer | undefined {
  const fields = typeof text === 'string' ? FORM.exec(text)?.groups?.['fields'] : undefined;
  if (fields === undefined) return undefined;
  try {
    const { sequencer, signature } = partsOf(JSON.parse(Buffer.from(fields, 'base64url').toString()));
    // Each sequencer has one text only.
    const isCanonical = textOf(sequencer, signature) === text;
    return isCanonical && isSignedBy(sequencer.owner, contentOf(sequencer), signature) ? sequencer : undefined;
  } catch {
    return undefined;
  }
}

function textOf(sequencer: Sequencer, { publicKey, signature }: Signature): string {
  const fields = JSON.stringify([...fieldsOf(sequencer), publicKey, signature]);
  return `lock1.${Buffer.from(fields).toString('base64url')}`;
}

/** The part that is signed. */
function contentOf(sequencer: Sequencer): string {
  return JSON.stringify(fieldsOf(sequencer));
}

function fieldsOf({ backend, key, fencingToken, owner }: Sequencer): string[] {
  return [backend, key, String(fencingToken), owner];
}

/** @throws when it is no sequencer */
function partsOf(fields: unknown): { readonly sequencer: Sequencer; readonly signature: Signature } {
  if (!Array.isArray(fields)) throw new TypeError('no list');
  const [backend, key, token, owner, publicKey, signature]: unknown[] = fields;
  assertKey(key);
  return {
    sequencer: {
      backend: matching(NAME, backend),
      key,
      fencingToken: BigInt(matching(TOKEN, token)),
      owner: matching(NAME, owner),
    },
    signature: { publicKey: matching(PUBLIC_KEY, publicKey), signature: matching(SIGNATURE, signature) },
  };
}

function matching(form: RegExp, field: unknown): string {
  if (typeof field === 'string' && form.test(field)) return field;
  throw new TypeError('not of the form');
}
