import type { Holder } from '../contract/holder.js';

/** Result of an acquisition that got no hold, because another caller has the key. */
export class KeyHeld {
  constructor(
    readonly holder?: Holder,
    /** Message for the caller's error. Absent: the usual message, which says that the key is held. */
    readonly message?: string,
  ) {}
}
