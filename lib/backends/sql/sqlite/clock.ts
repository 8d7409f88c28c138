/** The same instant throughout a statement. */
export const NOW_MILLISECONDS = `cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
