/** A server for the locks of one stampede. */
export interface Server extends AsyncDisposable {
  /** What the application's variable has to say to use it. */
  readonly address: string;
}
