import { expect, it } from '@jest/globals';
import { readdirSync } from 'node:fs';

const here = import.meta.dirname;

/** A backend whose specs are named after something else. */
const SPECS_OF: Readonly<Record<string, string>> = { typeorm: 'sqlite' };

it('every backend has a spec', () => {
  const backends = readdirSync(`${here}/../../lib/backends`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  const specs = readdirSync(here).filter((name) => name.endsWith('.spec.ts'));
  const without = backends.filter((name) => !specs.some((spec) => spec.startsWith(SPECS_OF[name] ?? name)));
  expect(backends).toContain('memory');
  expect(without).toEqual([]);
});
