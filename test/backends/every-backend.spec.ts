import { describe, expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BackendName, registered, REGISTRY } from './registry.js';

const TESTS = join(import.meta.dirname, '..');
const NAMES = Object.keys(REGISTRY) as BackendName[];

/** A folder whose entries are named after databases. */
const PREFIX_OF: Readonly<Record<string, string>> = { typeorm: 'sqlite' };

const textOf = (path: string): string => (existsSync(join(TESTS, path)) ? readFileSync(join(TESTS, path), 'utf8') : '');

describe('every backend', () => {
  it.each(readdirSync(join(TESTS, '../lib/backends')))('%s is in the registry', (folder) => {
    const prefix = PREFIX_OF[folder] ?? folder;
    expect(NAMES.filter((name) => name.startsWith(prefix))).not.toEqual([]);
  });

  it.each(NAMES)('%s has a spec for the contract, and one for its faults', (name) => {
    expect(textOf(`backends/${name}.spec.ts`)).toContain(`describeBackend('${name}'`);
    const { faults } = registered(name);
    if (faults.length > 0) expect(textOf(`faults/${name}.spec.ts`)).toContain(`describeFaults('${name}')`);
  });
});
