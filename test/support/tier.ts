/**
 * Whether this is a run of the quick tier, which `npm test` is. Any other run, such as jest's own for one spec, has all
 * tests.
 */
export const isQuickTier = process.env.LOCK_TIER === 'quick';
