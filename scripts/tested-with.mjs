/**
 * Writes the table "Tested with" of docs/choosing-a-backend.md from docs/tested-with.json, which whole runs of
 * all tests write.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';

import { root } from './execute.mjs';
import { findMysql } from './mysql.mjs';

const NOTES = join(root, 'docs/tested-with.json');
const PAGE = join(root, 'docs/choosing-a-backend.md');
const TABLE = /(?<=<!-- tested with -->\n\n)[\s\S]*?(?=\n\n<!-- tested with: end -->)/u;

/** Folders with the packages that the tests use. The oldest supported versions come first. */
const INSTALLATIONS = ['test/e2e/nest-10', 'test/e2e/nest-11', 'test/orms', '.'];
const PACKAGES = {
  Nest: '@nestjs/common',
  TypeScript: 'typescript',
  ioredis: 'ioredis',
  'node-redis': 'redis',
  pg: 'pg',
  mysql2: 'mysql2',
  libsql: 'libsql',
  TypeORM: 'typeorm',
  Prisma: '@prisma/client',
  Drizzle: 'drizzle-orm',
  Kysely: 'kysely',
  Knex: 'knex',
  Sequelize: 'sequelize',
  rxjs: 'rxjs',
};

const NO_RUN = { date: 'not run', passed: 0, failed: 0, servers: {} };

/** Records the result of a run: its commit, its servers, and the numbers of passed and failed tests. */
export function recordRun({ isNewer, passed, failed, notJudged }) {
  const notes = readNotes();
  const date = new Date().toISOString().slice(0, 10);
  notes[isNewer ? 'newer' : 'debian'] = {
    date,
    commit: readCommit(),
    passed,
    failed,
    notJudged,
    servers: readServerVersions(),
  };
  notes.packages = readPackageVersions();
  writeFileSync(NOTES, `${JSON.stringify(notes, null, 2)}\n`);
  writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), notes));
}

/** Returns the page with the table of the notes. */
export function withTable(page, notes = readNotes()) {
  return page.replace(TABLE, renderTable(notes));
}

function readNotes() {
  return existsSync(NOTES) ? JSON.parse(readFileSync(NOTES, 'utf8')) : {};
}

function renderTable({ debian = NO_RUN, newer = NO_RUN, packages = {} }) {
  const head = [
    '',
    `Debian 12's (\`npm run test:all\`, ${describeRun(debian)})`,
    `today's (with \`--newer\`, ${describeRun(newer)})`,
  ];
  const names = [...new Set([...Object.keys(debian.servers), ...Object.keys(newer.servers)])];
  const servers = names.map((name) => [name, debian.servers[name] ?? '', newer.servers[name] ?? '']);
  const clients = Object.entries(packages).map(([name, versions]) => [name, versions.join(', '), '']);
  return formatTable([head, ...clients, ...servers]);
}

function describeRun({ date, commit, passed, failed }) {
  const place = commit ? `, ${commit}` : '';
  return `${date}${place}: ${passed.toLocaleString('en')} passed, ${failed} failed`;
}

/** Returns the commit of the work tree, with `-dirty` behind it where files have been changed since. */
function readCommit() {
  return spawnSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' }).stdout.trim();
}

/** Formats a table as prettier does. */
function formatTable([head, ...rows]) {
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i].length), 3));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function readServerVersions() {
  const { LOCK_NEWER_SERVERS: newer } = env;
  const postgres = join(newer ? join(newer, 'postgresql') : '/', 'usr/lib/postgresql');
  const jars = join(newer ? join(newer, 'zookeeper') : '/', 'usr/share/java');
  return {
    Redis: readVersion('redis-server', '--version'),
    memcached: readVersion('memcached', '-V'),
    PostgreSQL: readVersion(join(postgres, findNewest(postgres), 'bin/postgres'), '--version'),
    PgBouncer: readVersion('/usr/sbin/pgbouncer', '--version'),
    MariaDB: readVersion('mariadbd', '--version'),
    MySQL: findMysql() === '' ? 'none' : readVersion(findMysql(), '--version'),
    etcd: readVersion('etcd', '--version'),
    ZooKeeper: readdirSync(jars)
      .map((name) => /^zookeeper-(\d.*)\.jar$/u.exec(name)?.[1])
      .find(Boolean),
  };
}

function readVersion(program, flag) {
  const { stdout } = spawnSync(program, [flag], { encoding: 'utf8' });
  return /\d+\.\d+(\.\d+)?/u.exec(stdout.replace(program, ''))?.[0] ?? 'unknown';
}

function findNewest(directory) {
  return readdirSync(directory).toSorted((a, b) => Number(b) - Number(a))[0];
}

function readPackageVersions() {
  const found = Object.entries(PACKAGES).map(([title, name]) => {
    const versions = INSTALLATIONS.map((place) => readInstalledVersion(join(root, place), name)).filter(Boolean);
    return [title, [...new Set(versions)]];
  });
  const nodes = ['node-22', 'node-24'].map((name) => readInstalledVersion(join(root, 'test/nodes'), name));
  return { Node: [process.versions.node, ...nodes.filter(Boolean)], ...Object.fromEntries(found) };
}

function readInstalledVersion(place, name) {
  const { packages } = JSON.parse(readFileSync(join(place, 'package-lock.json'), 'utf8'));
  return packages[`node_modules/${name}`]?.version;
}

if (argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8')));
