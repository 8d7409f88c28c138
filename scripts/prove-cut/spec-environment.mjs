import { join, relative } from 'node:path';
import { cwd, env } from 'node:process';

import { TestEnvironment } from 'jest-environment-node';

/**
 * Environment of jest that gives each spec a record of its own. It is made before the spec's copy of the environment, so
 * that all processes which the spec starts write to the same record.
 */
export default class SpecEnvironment extends TestEnvironment {
  constructor(config, context) {
    const { PROVE_CUT_RECORDS: records } = env;
    const spec = relative(cwd(), context.testPath);
    if (records) env.LOCK_MUTANT_RECORD = join(records, encodeURIComponent(spec));
    super(config, context);
  }
}
