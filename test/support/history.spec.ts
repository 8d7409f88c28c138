import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { HistoryRecorder, loadHistory } from './history.js';

describe('history', () => {
  let directory: string;
  let path: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'history-'));
    path = join(directory, 'a.jsonl');
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  it('reads back what was recorded, before the file is closed', () => {
    const recorder = new HistoryRecorder(path, 'a');
    const before = process.hrtime.bigint();
    const acquire = recorder.invoke({ key: 'tree', op: 'acquire' });
    acquire.ok({ token: 2n ** 60n + 1n });
    recorder.mark({ key: 'tree', op: 'held', owner: acquire.owner }, 5n);
    recorder.invoke({ key: 'tree', op: 'release', owner: acquire.owner }).fail();
    const [held, taken, release] = loadHistory([path]);
    recorder.close();

    expect(held).toEqual({ proc: 'a', key: 'tree', op: 'held', owner: acquire.owner, inv: 5n });
    expect(taken).toMatchObject({ op: 'acquire', owner: acquire.owner, token: 2n ** 60n + 1n });
    expect(taken?.inv).toBeGreaterThanOrEqual(before);
    expect(taken?.ok).toBeGreaterThanOrEqual(taken?.inv ?? before);
    expect(release).toMatchObject({ op: 'release', owner: acquire.owner });
    expect(release?.fail).toBeGreaterThanOrEqual(release?.inv ?? before);
  });

  it('leaves an operation without a verdict unknown', () => {
    const recorder = new HistoryRecorder(path);
    recorder.invoke({ key: 'tree', op: 'acquire' });
    recorder.close();
    const [acquire] = loadHistory([path]);
    expect(acquire).toMatchObject({ proc: String(process.pid), op: 'acquire' });
    expect(acquire).not.toHaveProperty('ok');
    expect(acquire).not.toHaveProperty('fail');
  });

  it('gives each acquisition an owner of its own', () => {
    const recorder = new HistoryRecorder(path);
    const owners = [1, 2].map(() => recorder.invoke({ key: 'tree', op: 'acquire' }).owner);
    recorder.close();
    expect(new Set(owners).size).toBe(2);
  });

  it('merges processes in the order of time', () => {
    const second = join(directory, 'b.jsonl');
    const [a, b] = [new HistoryRecorder(path, 'a'), new HistoryRecorder(second, 'b')];
    for (const recorder of [a, b, a, b]) recorder.invoke({ key: 'tree', op: 'renew' }).ok();
    for (const recorder of [a, b]) recorder.close();
    expect(loadHistory([second, path]).map(({ proc }) => proc)).toEqual(['a', 'b', 'a', 'b']);
  });

  it('tolerates a torn last line, and no other', () => {
    const recorder = new HistoryRecorder(path);
    recorder.invoke({ key: 'tree', op: 'acquire' }).ok();
    recorder.close();
    appendFileSync(path, '{"id":"1/2","proc":"1","ke');
    expect(loadHistory([path])).toHaveLength(1);
    writeFileSync(path, `{"torn\n${readFileSync(path, 'utf8')}`);
    expect(() => loadHistory([path])).toThrow(SyntaxError);
  });

  it('refuses an outcome of nothing', () => {
    writeFileSync(path, '{"of":"1/1","ok":"5"}\n');
    expect(() => loadHistory([path])).toThrow('never began');
  });
});
