/** Runs the tests of sales.test.ts, and says how each ended. */
import { join } from 'node:path';
import { run } from 'node:test';

let failed = 0;
for await (const { type, data } of run({ files: [join(import.meta.dirname, 'sales.test.ts')] })) {
  if (type !== 'test:pass' && type !== 'test:fail') continue;
  if (data.nesting !== 0) continue;
  console.log(`${type === 'test:pass' ? 'pass' : 'FAIL'}: ${data.name}`);
  if (type === 'test:fail') failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
