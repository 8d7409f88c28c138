/**
 * The columns of a table of locks that older programs use. It has a row for each name that is locked, and no other row.
 * `addLockColumns` adds the columns that such a table lacks. Rows and inserts of older programs stay valid.
 */
export interface ExistingTableColumns {
  /** The locked name, such as `method_name`: text, with a unique index of its own. */
  key: string;
  /** The holder's id, such as `client_id`: text for 36 characters or more. */
  owner: string;
  /** The date and time of the row's last write. Give this option if the library has to keep the column up to date. */
  updatedAt?: string;
  /** The time at which the lease of the row ends. Empty in rows of older programs. @default 'expires_at' */
  expiresAt?: string;
  /** The fencing token. @default 'token' */
  token?: string;
  /** Describes the holder. @default 'metadata' */
  metadata?: string;
}

/** Types that a dialect accepts for the columns of an existing table. */
export interface ExistingTableTypes {
  readonly textTypePattern: RegExp;
  /** Pattern of the types of `updatedAt`, as `describeColumns` reads them. */
  readonly updatedAtTypePattern: RegExp;
  /** Returns the pattern of the keys that a column of this character set keeps unchanged. */
  getStorablePattern(charset: unknown): RegExp;
}
