/** As a build of OpenSSL that refuses kinds of keys: those that the environment names. */
const crypto = require('node:crypto');

const { generateKeyPairSync } = crypto;
const refused = (process.env.REFUSED_KEYS ?? '').split(',');
crypto.generateKeyPairSync = (kind, ...options) => {
  if (refused.includes(kind)) throw new Error(`${kind} is not allowed here`);
  return generateKeyPairSync(kind, ...options);
};
