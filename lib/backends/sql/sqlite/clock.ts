/** Milliseconds since 1970 by the machine's clock. The value is the same throughout a statement. */
export const NOW_MILLISECONDS_SQL = `cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
