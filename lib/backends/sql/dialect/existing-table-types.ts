/**
 * The columns of a table of locks that was there before: one row for each method that somebody has locked, and none for
 * the others. What such a table lacks can be added by `addLockColumns`; older programs' rows and inserts stay valid.
 */
export interface ExistingTableColumns {
  /** The locked name, such as `method_name`: text, with a unique index of its own. */
  key: string;
  /** The holder's id, such as `client_id`: text for 36 characters or more. */
  owner: string;
  /** When the row was written last, as a date and time. Kept up to date where it is named. */
  updatedAt?: string;
  /** Until when the row counts. Empty in rows of older programs. @default 'expires_at' */
  expiresAt?: string;
  /** The fencing token. @default 'token' */
  token?: string;
  /** Describes the holder. @default 'metadata' */
  metadata?: string;
}

export interface ExistingTableTypes {
  /** Patterns of the types of `key` and `owner`, and of `updatedAt`, as `describe` has them. */
  readonly text: RegExp;
  readonly updatedAt: RegExp;
  /** Text that a column of this character set can keep. */
  writes(charset: unknown): RegExp;
}
