import { readdirSync, readFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';

const root = join(import.meta.dirname, '../..');
const folders = readdirSync(join(root, 'examples')).filter((name) => !name.includes('.'));

/** Who has the lock first changes from run to run. */
const SAME_EVERY_TIME: Record<string, (printed: string) => string> = {
  cron: (printed) => sorted(printed.replaceAll(/instance \d/gu, 'an instance')),
  leader: inOrderOfOffice,
  microservice: (printed) => sorted(printed.replaceAll(/ann|bob/gu, 'one')),
};

/** A timer of cron tells that the machine is busy. */
const LATE_TICK = /^\[Cron\] Missed execution deadline .*\n/gmu;

describe('npm run example', () => {
  it.each(folders)('%s prints what its README says, and ends by itself', async (name) => {
    const readme = readFileSync(join(root, 'examples', name, 'README.md'), 'utf8');
    const [, promised = ''] = /```text\n(.*?)```/su.exec(readme) ?? [];
    const child = spawn('npm', ['run', '--silent', 'example', name], {
      cwd: root,
      env: { ...env, NODE_OPTIONS: '', REDIS_URL: undefined },
    });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    const comparable = SAME_EVERY_TIME[name] ?? String;
    expect({ stdout: comparable(stdout), stderr: stderr.replaceAll(LATE_TICK, ''), code }).toEqual({
      stdout: comparable(promised),
      stderr: '',
      code: 0,
    });
  });

  it('has an example in each folder that a README introduces', () => {
    const listed = readFileSync(join(root, 'examples/README.md'), 'utf8');
    for (const name of folders) expect(listed).toContain(`(${name}/README.md)`);
  });
});

/** The instance that leads first is number 1. */
function inOrderOfOffice(printed: string): string {
  const [, first] = /^instance (\d)/u.exec(printed) ?? [];
  return printed.replaceAll(/instance (\d)/gu, (_, number) => `instance ${number === first ? 1 : 2}`);
}

function sorted(printed: string): string {
  return printed.split('\n').toSorted().join('\n');
}
