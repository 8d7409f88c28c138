import type { Holder } from '../contract/holder.js';

/** Result of an acquisition that got no hold, because another caller has the key. */
export class KeyHeld {
  constructor(
    readonly holder?: Holder,
    /** Message of the caller's error, where "is held" would not explain enough. */
    readonly message?: string,
  ) {}
}
