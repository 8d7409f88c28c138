/** Where what the holder writes begins. */
export const SAVEPOINT = 'lock_taken';
