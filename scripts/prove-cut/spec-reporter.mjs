import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { cwd, env, exit } from 'node:process';

/** Reporter of jest that writes a line for each spec, and ends jest at the first failed test where that is wanted. */
export default class SpecReporter {
  onTestCaseResult({ path }, { status, fullName }) {
    if (status === 'failed') this.#endWith(path, 0, [fullName]);
  }

  onTestResult({ path }, { perfStats, testResults, testExecError }) {
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    if (testExecError && failed.length === 0) failed.push(String(testExecError.message).split('\n', 1)[0]);
    if (failed.length > 0) this.#endWith(path, perfStats.runtime, failed);
    this.#write(path, perfStats.runtime, failed);
  }

  #endWith(...result) {
    if (!env.PROVE_CUT_ENDS_EARLY) return;
    this.#write(...result);
    exit(1);
  }

  #write(path, ms, failed) {
    appendFileSync(env.PROVE_CUT_RESULTS, `${JSON.stringify({ spec: relative(cwd(), path), ms, failed })}\n`);
  }
}
