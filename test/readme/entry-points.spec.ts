import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { read, ROOT } from './pages.js';

const { ENTRY_POINTS } = createRequire(import.meta.url)('../../scripts/entry-points.cjs') as {
  readonly ENTRY_POINTS: Readonly<Record<string, string>>;
};
const NAME = 'nestjs-distributed-lock';
const entries = Object.entries(ENTRY_POINTS);
const BACKENDS = readdirSync(join(ROOT, 'lib/backends'));

const PARSE_HOST = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined };

const manifest = JSON.parse(read('package.json')) as { readonly exports: object; readonly typesVersions: object };

/** Every folder of lib with an index.ts is an entry point, and all lists of them agree. */
describe('the entry points', () => {
  it('are the backends, the core and what goes with it', () => {
    expect(Object.keys(ENTRY_POINTS)).toEqual(
      expect.arrayContaining(['.', './core', ...BACKENDS.map((name) => `./${name}`)]),
    );
  });

  it('are the exports of package.json', () => {
    const expected = entries.map(([path, file]) => [path, exportOf(file)]);
    expect(manifest.exports).toEqual({ ...Object.fromEntries(expected), './package.json': './package.json' });
  });

  it('have types for compilers that read no exports', () => {
    const expected = entries.slice(1).map(([path, file]) => [path.slice(2), [built('cjs', file, 'd.ts')]]);
    expect(manifest.typesVersions).toEqual({ '*': Object.fromEntries(expected) });
  });

  it('are found by the compiler where tests import them', () => {
    const { options } = ts.getParsedCommandLineOfConfigFile(join(ROOT, 'tsconfig.json'), {}, PARSE_HOST) ?? {};
    const found = entries.map(([path]) => {
      const { resolvedModule } = ts.resolveModuleName(join(NAME, path), join(ROOT, 'test/a.ts'), options ?? {}, ts.sys);
      return [path, resolvedModule?.resolvedFileName];
    });
    expect(found).toEqual(entries.map(([path, file]) => [path, join(ROOT, file)]));
  });

  it('have a page of api/ each', () => {
    const expected = entries.map(([path]) => `${path === '.' ? 'index' : path.slice(2)}.md`);
    expect(readdirSync(join(ROOT, 'api')).toSorted()).toEqual(expected.toSorted());
  });
});

describe('the pages of backends', () => {
  const pages = readdirSync(join(ROOT, 'docs/backends')).map((page) => `docs/backends/${page}`);
  const pagesOf = (backend: string): string[] => pages.filter((page) => read(page).includes(`'${NAME}/${backend}'`));

  it.each(BACKENDS)('show the import of %s', (backend) => {
    expect(pagesOf(backend)).not.toEqual([]);
  });

  it('are linked by the table of the README and the index of docs', () => {
    const linked = (page: string): string[] =>
      [...read(page).matchAll(/^[|-] .*$/gmu)]
        .flatMap(([line]) => [...line.matchAll(/backends\/([\w-]+\.md)\)/gu)])
        .map(([, file = '']) => file);
    const expected = expect.arrayContaining(pages.map((page) => basename(page)));
    expect({ readme: linked('README.md'), index: linked('docs/README.md') }).toEqual({
      readme: expected,
      index: expected,
    });
  });

  it('are compared in a table with a row for each backend', () => {
    const rows = [...read('docs/choosing-a-backend.md').matchAll(/^\| `\/([\w-]+)` /gmu)].map(([, name]) => name);
    expect(new Set(rows)).toEqual(new Set(BACKENDS));
  });
});

function exportOf(file: string): object {
  return {
    types: { import: built('esm', file, 'd.ts'), require: built('cjs', file, 'd.ts') },
    'module-sync': built('esm', file, 'js'),
    import: built('esm', file, 'js'),
    require: built('cjs', file, 'js'),
  };
}

/** Returns the built file of a source file of lib. */
function built(format: 'esm' | 'cjs', file: string, extension: 'js' | 'd.ts'): string {
  return file.replace('lib/', `./dist/${format}/`).replace(/ts$/u, extension);
}
