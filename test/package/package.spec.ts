import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { node, PackedLibrary, root, run } from './packed-library.js';

const { ENTRY_POINTS } = createRequire(import.meta.url)('../../scripts/entry-points.cjs') as {
  readonly ENTRY_POINTS: Readonly<Record<string, string>>;
};

/** Sub-paths of the package behind its name, such as `/core`; the root is empty. */
const SUB_PATHS = Object.keys(ENTRY_POINTS).map((path) => path.slice(1));

/** Tests the packed tarball, as an application gets it. Needs the build. */
describe('the package', () => {
  let library: PackedLibrary;
  beforeAll(() => {
    library = new PackedLibrary();
  });
  afterAll(() => library.remove());

  const application: PackedLibrary['application'] = (...args) => library.application(...args);
  const nest12 = join(root, 'node_modules');
  const nest11 = join(root, 'test/nest-11/node_modules');

  /** The complaints of the compiler. */
  const compile = (home: string, args: string[]): string => {
    const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...args], {
      cwd: home,
      encoding: 'utf8',
    });
    return stdout;
  };

  const APPLICATION = `
    class Sales {
      async buy(id) { return currentLock().key; }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Sales.prototype, 'buy');
    Locked('sale_:id')(Sales.prototype, 'buy', descriptor);
    Object.defineProperty(Sales.prototype, 'buy', descriptor);
    class App {}
    Module({ imports: [DistributedLockModule.forRoot(memory())], providers: [Sales] })(App);
    (async () => {
      const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
      console.log(await app.get(Sales).buy(42));
      await app.close();
    })();`;
  const ESM = `
    import 'reflect-metadata';
    import { Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import { DistributedLockModule, Locked, currentLock } from 'nestjs-distributed-lock';
    import { memory } from 'nestjs-distributed-lock/memory';`;
  const CJS = `
    require('reflect-metadata');
    const { Module } = require('@nestjs/common');
    const { NestFactory } = require('@nestjs/core');
    const { DistributedLockModule, Locked, currentLock } = require('nestjs-distributed-lock');
    const { memory } = require('nestjs-distributed-lock/memory');`;

  it('serves an ES module on Nest 12', () => {
    expect(node(application('esm-12', nest12, 'module'), 'app.js', ESM + APPLICATION)).toBe('sale_42\n');
  });

  it('serves a CommonJS application on Nest 12', () => {
    expect(node(application('cjs-12', nest12, 'commonjs'), 'app.js', CJS + APPLICATION)).toBe('sale_42\n');
  });

  it('serves a CommonJS application on Nest 11', () => {
    expect(node(application('cjs-11', nest11, 'commonjs'), 'app.js', CJS + APPLICATION)).toBe('sale_42\n');
  });

  it('is one copy, however it is loaded', () => {
    const home = application('copies', nest12, 'module');
    const names = JSON.stringify(SUB_PATHS.map((path) => `nestjs-distributed-lock${path}`));
    const text = `
      import { createRequire } from 'node:module';
      const require = createRequire(import.meta.url);
      for (const name of ${names}) {
        const [esm, cjs] = [await import(name), require(name)];
        for (const key of Object.keys(cjs)) if (key !== 'default' && cjs[key] !== esm[key]) console.log(name, key);
        if (Object.keys(esm).length === 0) console.log(name, 'is empty');
      }`;
    expect(node(home, 'copies.js', text)).toBe('');
  });

  it('loads no client before somebody asks for it', () => {
    const home = application('lean', nest12, 'module');
    for (const client of ['ioredis', 'redis', 'typeorm']) rmSync(join(home, 'node_modules', client));
    expect(node(home, 'app.js', ESM + APPLICATION)).toBe('sale_42\n');
    const withoutClient = `
      import { redis } from 'nestjs-distributed-lock/redis';
      import { LockService } from 'nestjs-distributed-lock/core';
      const locks = new LockService(redis({ url: 'redis://127.0.0.1:1' }));
      await locks.start().catch((error) => console.log(error.name, error.message));
      await locks.close();`;
    expect(node(home, 'redis.js', withoutClient)).toMatch(
      /LockConfigurationError .*ioredis, version 5 or 6, or redis, version 5 or 6: npm install/u,
    );
    const withoutNodeRedis = withoutClient.replace("127.0.0.1:1'", "127.0.0.1:1', clientPackage: 'redis'");
    expect(node(home, 'node-redis.js', withoutNodeRedis)).toMatch(
      /LockConfigurationError .*package redis, version 5 or 6: npm install redis$/mu,
    );
  });

  it('serves writers of stores who have no Nest', () => {
    const home = application('stores', nest12, 'module');
    rmSync(join(home, 'node_modules/@nestjs'));
    const text = `
      import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
      import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
      const world = new MemoryLeaseStore();
      for (const { check } of leaseStorePromises({ connect: () => world, shortTtlMs: 300 })) await check();
      console.log('kept');`;
    expect(node(home, 'store.js', text)).toBe('kept\n');
  });

  it('has exports and types that every kind of resolution finds', () => {
    expect(run('npx', ['publint', '--strict', library.tarball], root)).toMatch(/All good|no (issues|problems)/iu);
    const attw = run(
      'npx',
      ['attw', library.tarball, '--no-emoji', '--format', 'json', '--ignore-rules', 'cjs-resolves-to-esm'],
      root,
    );
    expect(JSON.parse(attw)).toMatchObject({ problems: {} });
  });

  it('has types for an application that is compiled for ES2021, and checks the declarations of its libraries', () => {
    const home = application('types', nest12, 'module');
    for (const types of ['@types', 'undici-types']) {
      symlinkSync(join(root, 'node_modules', types), join(home, 'node_modules', types));
    }
    const imports = SUB_PATHS.filter((path) => path !== '/typeorm').map(
      (path) => `import 'nestjs-distributed-lock${path}';`,
    );
    writeFileSync(join(home, 'app.ts'), imports.join('\n'));
    const options = [
      '--noEmit',
      '--skipLibCheck',
      'false',
      '--lib',
      'ES2021',
      '--module',
      'nodenext',
      '--types',
      'node',
    ];
    expect(compile(home, ['app.ts', '--experimentalDecorators', ...options])).toBe('');
  });

  it('loads no client before somebody needs it, but for TypeORM and Nest', () => {
    const home = application('loads', nest12, 'commonjs');
    const clients = [
      'pg',
      'mysql2',
      'better-sqlite3',
      'libsql',
      'typeorm',
      'ioredis',
      'redis',
      '@redis',
      'node-zookeeper-client',
    ];
    const found = SUB_PATHS.map((path) => {
      const text = `
        require('reflect-metadata');
        require('nestjs-distributed-lock${path}');
        const loaded = Object.keys(require.cache).map((file) => file.split('node_modules/').at(-1).split('/')[0]);
        console.log(${JSON.stringify(clients)}.filter((client) => loaded.includes(client)).join());
      `;
      return [path, node(home, 'loads.cjs', text).trim()];
    });
    const expected = SUB_PATHS.map((path) => [path, path === '/typeorm' ? 'typeorm' : '']);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
  });

  it('has a command', () => {
    const home = application('command', nest12, 'module');
    const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const program = join(home, 'node_modules/nestjs-distributed-lock', bin['nestjs-distributed-lock']);
    expect(run(process.execPath, [program, 'sql', '--database', 'postgres'], home)).toMatch(/^create table/u);
  });

  it('is small: 510 kB packed', () => {
    expect(statSync(library.tarball).size).toBeLessThan(510_000);
  });

  it('contains what it must, and nothing of ours', () => {
    const files = run('tar', ['-tzf', library.tarball], root).trim().split('\n');
    expect(files).toContain('package/LICENSE');
    expect(files).toContain('package/README.md');
    expect(
      files.filter((file) => !/^package\/(dist\/(esm|cjs)\/|LICENSE$|README\.md$|package\.json$)/u.test(file)),
    ).toEqual([]);
    expect(files.filter((file) => /\bspec\b|test\/|sample/u.test(file))).toEqual([]);
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies?: unknown };
    expect(dependencies).toBeUndefined();
  });
});
