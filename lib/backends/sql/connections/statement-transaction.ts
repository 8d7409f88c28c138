import { createHolderClient } from './holder-client.js';
import type { Query } from './query.js';
import type { StatementRunner, DriverTransaction } from './sql-database.js';

interface StatementTransactionOptions {
  readonly client: object;
  readonly send: Query;
  readonly clientForHolders: object;
  readonly statementMethods: readonly string[];
  /** Must begin with the isolation level READ COMMITTED. */
  readonly beginStatements: readonly string[];
}

/** Transaction that begins and ends by SQL statements. */
export class StatementTransaction implements DriverTransaction {
  readonly client: object;
  readonly sendDirectly: Query;
  readonly attachment: object;
  isActive = false;
  readonly #beginStatements: readonly string[];
  #isReleased = false;

  constructor(
    { client, send, clientForHolders, statementMethods, beginStatements }: StatementTransactionOptions,
    private readonly runStatement: StatementRunner,
  ) {
    this.client = client;
    this.sendDirectly = send;
    this.#beginStatements = beginStatements;
    this.attachment = createHolderClient(clientForHolders, statementMethods, runStatement, () => this.#isReleased);
  }

  async begin(): Promise<void> {
    for (const statement of this.#beginStatements) await this.query(statement, []);
    this.isActive = true;
  }

  async commit(): Promise<void> {
    await this.query('commit', []);
    this.isActive = false;
  }

  async rollback(): Promise<void> {
    await this.query('rollback', []);
    this.isActive = false;
  }

  readonly query: Query = (sql, parameters) => this.runStatement(() => this.sendDirectly(sql, parameters));

  async release(): Promise<void> {
    this.#isReleased = true;
  }
}
