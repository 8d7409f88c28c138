interface Closing {
  close(withinMs?: number): Promise<unknown>;
}

/** A server, or several, and what each test opens on them. */
export abstract class World implements AsyncDisposable {
  protected readonly opened: Closing[] = [];

  /** One that has started. */
  static async start<Args extends unknown[], Started extends World>(
    this: new (...args: Args) => Started,
    ...args: Args
  ): Promise<Started> {
    const world = new this(...args);
    await world.start();
    return world;
  }

  /** One for all tests of this block: it has started before the first of them, and stops after the last. */
  static shared<Args extends unknown[], Shared extends World>(
    this: new (...args: Args) => Shared,
    ...args: Args
  ): Shared {
    const world = new this(...args);
    beforeAll(() => world.start());
    afterEach(() => world.endTest());
    afterAll(() => world.stop());
    return world;
  }

  abstract start(): Promise<void>;

  abstract stop(): Promise<void>;

  /** Ends with the test. */
  closing<Opened extends Closing>(opened: Opened): Opened {
    this.opened.push(opened);
    return opened;
  }

  /** The last that was opened is closed first. */
  async endTest(): Promise<void> {
    for (const opened of this.opened.splice(0).toReversed()) await opened.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endTest();
    await this.stop();
  }
}
