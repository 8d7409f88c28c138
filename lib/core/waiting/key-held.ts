import type { Holder } from '../contract/holder.js';

/** Why there is no hold: somebody else's, as far as we know whose. */
export class KeyHeld {
  constructor(
    readonly holder?: Holder,
    /** Where "is held" would not be the whole truth. */
    readonly message?: string,
  ) {}
}
