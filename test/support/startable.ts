/** What a test starts and stops, or all tests of a block share. */
export abstract class Startable implements AsyncDisposable {
  /** One that has started. */
  static async start<Args extends unknown[], Started extends Startable>(
    this: new (...args: Args) => Started,
    ...args: Args
  ): Promise<Started> {
    const started = new this(...args);
    await started.start();
    return started;
  }

  /** One for all tests of this block: it has started before the first of them, and stops after the last. */
  static shared<Args extends unknown[], Shared extends Startable>(
    this: new (...args: Args) => Shared,
    ...args: Args
  ): Shared {
    const shared = new this(...args);
    beforeAll(() => shared.start());
    afterEach(() => shared.endTest());
    afterAll(() => shared.stop());
    return shared;
  }

  abstract start(): Promise<void>;

  abstract stop(): Promise<void>;

  /** After each test of those that share it. */
  async endTest(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endTest();
    await this.stop();
  }
}
