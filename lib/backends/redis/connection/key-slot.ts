export const SLOT_COUNT = 16_384;

/**
 * Returns the slot of a key:
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model
 */
export function slotOf(key: string): number {
  const openBrace = key.indexOf('{');
  const closeBrace = key.indexOf('}', openBrace + 1);
  const hashedPart = openBrace >= 0 && closeBrace > openBrace + 1 ? key.slice(openBrace + 1, closeBrace) : key;
  return crc16Xmodem(Buffer.from(hashedPart)) % SLOT_COUNT;
}

const CRC16_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

function crc16Xmodem(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ (CRC16_TABLE[(crc >> 8) ^ byte] ?? 0);
  return crc;
}
