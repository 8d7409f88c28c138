import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

it('a driver that is not installed stops the start of an application, and is named', async () => {
  const register = path('../../support/ts-register.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--import',
    register,
    path('./without-drivers-child.ts'),
  ]);
  const lines = stdout.trim().split('\n');
  expect(lines).toHaveLength(6);
  for (const line of lines) {
    const driver = line.startsWith('postgres') ? 'pg' : 'mysql';
    expect(line).toMatch(
      new RegExp(`: LockConfigurationError: typeorm\\(\\) needs the driver .*npm install ${driver}`, 'u'),
    );
  }
});
