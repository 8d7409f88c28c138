/** Who holds a key, as the holder itself put it: advice for people, no proof of anything. */
export interface HolderMetadata {
  readonly host: string;
  readonly pid: number;
  readonly label?: string;
}

/** The present holder of a key, as far as a backend could find out. */
export interface Holder extends HolderMetadata {
  /**
   * When the holder got the key, or stood in line for it: by the backend's clock, or by the holder's where that keeps
   * no time.
   */
  readonly since?: Date;
}
