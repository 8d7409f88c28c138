import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** Proof that a process wrote a text. */
export interface Signature {
  /** Ed25519 key, 32 bytes in base64url. */
  readonly publicKey: string;
  readonly signature: string;
}

interface ProcessIdentity {
  readonly name: string;
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/** Number of base64url characters of the hash that names a process: 132 bits. */
const NAME_LENGTH = 22;

let identity: ProcessIdentity | undefined;
let ownerCount = 0;

/**
 * Returns a new owner: the process' name and a number. The name is a hash of the process' public key, by which a reader
 * checks that the same process signed a sequencer.
 */
export function createOwner(): string {
  ownerCount += 1;
  return `${getIdentity().name}.${ownerCount.toString(36)}`;
}

/** Signs `text` as this process. */
export function signText(text: string): Signature {
  const { publicKey, privateKey } = getIdentity();
  return { publicKey, signature: sign(null, Buffer.from(text), privateKey).toString('base64url') };
}

/** Returns whether the process that made `owner` has signed `text`. @throws when `publicKey` is no Ed25519 key */
export function isSignedBy(owner: string, text: string, { publicKey, signature }: Signature): boolean {
  if (!owner.startsWith(`${processNameOf(publicKey)}.`)) return false;
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
}

/** Returns the identity of this process. The first call creates it, so that loading the module costs nothing. */
function getIdentity(): ProcessIdentity {
  identity ??= createIdentity();
  return identity;
}

function createIdentity(): ProcessIdentity {
  const pair = generateKeyPairSync('ed25519');
  const { x: publicKey = '' } = pair.publicKey.export({ format: 'jwk' });
  return { name: processNameOf(publicKey), publicKey, privateKey: pair.privateKey };
}

function processNameOf(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('base64url').slice(0, NAME_LENGTH);
}
