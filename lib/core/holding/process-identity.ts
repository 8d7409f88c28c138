import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** Proof that the process wrote a text whose name is in its owners. */
export interface Signature {
  /** Ed25519, the 32 bytes of it. */
  readonly publicKey: string;
  readonly signature: string;
}

interface Identity {
  readonly name: string;
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/** 128 bits of a hash, as 22 letters. */
const NAME_LENGTH = 22;

let identity: Identity | undefined;
let owners = 0;

/**
 * An owner that was never used before: the process' name and a number. The name is a hash of its public key, as random
 * as the key. So a server that names the owner of a key says who may have signed what is shown for it.
 */
export function newOwner(): string {
  owners += 1;
  return `${self().name}.${owners.toString(36)}`;
}

/** Signs `text` as this process. */
export function signed(text: string): Signature {
  const { publicKey, privateKey } = self();
  return { publicKey, signature: sign(null, Buffer.from(text), privateKey).toString('base64url') };
}

/** Whether the process of `owner` has signed `text`. @throws when that is not a key */
export function isSignedBy(owner: string, text: string, { publicKey, signature }: Signature): boolean {
  if (!owner.startsWith(`${nameOf(publicKey)}.`)) return false;
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
}

/** Made with the first lock: an application that only loads the module pays nothing. */
function self(): Identity {
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
