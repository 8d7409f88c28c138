import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** Proof that a process wrote a text. The name of the process begins its owners. */
export interface Signature {
  /** Ed25519 key, 32 bytes in base64url. */
  readonly publicKey: string;
  readonly signature: string;
}

interface Identity {
  readonly name: string;
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/** Characters of a hash in base64url that name a process: 132 bits. */
const NAME_LENGTH = 22;

let identity: Identity | undefined;
let ownerCount = 0;

/**
 * Returns an owner that was never used before: the process' name and a number. The name is a hash of the process' public
 * key. A reader of the owner can therefore check that a sequencer was signed by the same process.
 */
export function newOwner(): string {
  ownerCount += 1;
  return `${ownIdentity().name}.${ownerCount.toString(36)}`;
}

/** Signs `text` as this process. */
export function signText(text: string): Signature {
  const { publicKey, privateKey } = ownIdentity();
  return { publicKey, signature: sign(null, Buffer.from(text), privateKey).toString('base64url') };
}

/** Returns whether the process of `owner` has signed `text`. @throws when `publicKey` is no Ed25519 key */
export function isSignedBy(owner: string, text: string, { publicKey, signature }: Signature): boolean {
  if (!owner.startsWith(`${nameOf(publicKey)}.`)) return false;
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
}

/** Returns the identity of this process. It is made with the first lock, so that loading the module costs nothing. */
function ownIdentity(): Identity {
  identity ??= create();
  return identity;
}

function create(): Identity {
  const pair = generateKeyPairSync('ed25519');
  const { x: publicKey = '' } = pair.publicKey.export({ format: 'jwk' });
  return { name: nameOf(publicKey), publicKey, privateKey: pair.privateKey };
}

function nameOf(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('base64url').slice(0, NAME_LENGTH);
}
