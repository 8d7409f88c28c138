import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BackendName, registered, REGISTRY } from './registry.js';

const HERE = import.meta.dirname;
/** The rooms that the backends of SQL share have no backend of their own. */
const FOLDERS = readdirSync(join(HERE, '../../lib/backends')).filter((folder) => folder !== 'sql');
const NAMES = Object.keys(REGISTRY) as BackendName[];

const contractOf = (name: string): string => `${name}-contract.spec.ts`;

/** The text of the spec of this name, in the folder that has it. */
function textOf(spec: string): string {
  const path = FOLDERS.map((folder) => join(HERE, folder, spec)).find((one) => existsSync(one));
  return path === undefined ? '' : readFileSync(path, 'utf8');
}

describe('every backend', () => {
  it.each(FOLDERS)('%s is in the registry', (folder) => {
    const specs = readdirSync(join(HERE, folder));
    expect(NAMES.filter((name) => specs.includes(contractOf(name)))).not.toEqual([]);
  });

  it.each(NAMES)('%s has a spec for the contract, and one for its faults', (name) => {
    expect(textOf(contractOf(name))).toContain(`describeBackend('${name}'`);
    const { faults, quick = false } = registered(name);
    const faultsSpec = quick ? `${name}-faults.spec.ts` : `${name}-faults.long.spec.ts`;
    if (faults.length > 0) expect(textOf(faultsSpec)).toContain(`describeFaults('${name}')`);
  });
});
