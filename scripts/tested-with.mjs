/** The table "Tested with" of docs/choosing-a-backend.md, from what runs with `--record` have noted in docs/tested-with.json. */
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

/** Where the packages stand that are installed for tests, the oldest admitted ones first. */
const INSTALLATIONS = ['test/e2e/nest-10', 'test/e2e/nest-11', '.'];
const PACKAGES = {
  Nest: '@nestjs/common',
  TypeScript: 'typescript',
  ioredis: 'ioredis',
  TypeORM: 'typeorm',
  rxjs: 'rxjs',
};

const NONE = { date: 'not run', passed: 0, failed: 0, servers: {} };

/** Notes what a run was made with: the servers that it started, and how many tests passed. */
export function record({ isNewer, passed, failed }) {
  const notes = readNotes();
  const date = new Date().toISOString().slice(0, 10);
  notes[isNewer ? 'newer' : 'each change'] = { date, passed, failed, servers: serverVersions() };
  notes.packages = packageVersions();
  writeFileSync(NOTES, `${JSON.stringify(notes, null, 2)}\n`);
  writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), notes));
}

/** The page with the table that the notes make. */
export function withTable(page, notes = readNotes()) {
  return page.replace(TABLE, tableOf(notes));
}

function readNotes() {
  return existsSync(NOTES) ? JSON.parse(readFileSync(NOTES, 'utf8')) : {};
}

function tableOf({ 'each change': debian = NONE, newer = NONE, packages = {} }) {
  const head = ['', `with each change (${told(debian)})`, `today's (\`npm test -- --newer\`: ${told(newer)})`];
  const names = [...new Set([...Object.keys(debian.servers), ...Object.keys(newer.servers)])];
  const servers = names.map((name) => [name, debian.servers[name] ?? '', newer.servers[name] ?? '']);
  const clients = Object.entries(packages).map(([name, versions]) => [name, versions.join(', '), '']);
  return aligned([head, ...clients, ...servers]);
}

function told({ date, passed, failed }) {
  return `${date}: ${passed.toLocaleString('en')} passed, ${failed} failed`;
}

/** As prettier writes tables. */
function aligned([head, ...rows]) {
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i].length), 3));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function serverVersions() {
  const { LOCK_NEWER_SERVERS: newer } = env;
  const postgres = join(newer ? join(newer, 'postgresql') : '/', 'usr/lib/postgresql');
  const jars = join(newer ? join(newer, 'zookeeper') : '/', 'usr/share/java');
  return {
    Redis: versionFrom('redis-server', '--version'),
    memcached: versionFrom('memcached', '-V'),
    PostgreSQL: versionFrom(join(postgres, newestIn(postgres), 'bin/postgres'), '--version'),
    PgBouncer: versionFrom('/usr/sbin/pgbouncer', '--version'),
    MariaDB: versionFrom('mariadbd', '--version'),
    MySQL: findMysql() === '' ? 'none' : versionFrom(findMysql(), '--version'),
    etcd: versionFrom('etcd', '--version'),
    ZooKeeper: readdirSync(jars)
      .map((name) => /^zookeeper-(\d.*)\.jar$/u.exec(name)?.[1])
      .find(Boolean),
  };
}

function versionFrom(program, flag) {
  const { stdout } = spawnSync(program, [flag], { encoding: 'utf8' });
  return /\d+\.\d+(\.\d+)?/u.exec(stdout.replace(program, ''))?.[0] ?? 'unknown';
}

function newestIn(directory) {
  return readdirSync(directory).toSorted((a, b) => Number(b) - Number(a))[0];
}

function packageVersions() {
  const found = Object.entries(PACKAGES).map(([title, name]) => {
    const versions = INSTALLATIONS.map((place) => installed(join(root, place), name)).filter(Boolean);
    return [title, [...new Set(versions)]];
  });
  const nodes = ['node-22', 'node-24'].map((name) => installed(join(root, 'test/nodes'), name));
  return { Node: [process.versions.node, ...nodes.filter(Boolean)], ...Object.fromEntries(found) };
}

function installed(place, name) {
  const { packages } = JSON.parse(readFileSync(join(place, 'package-lock.json'), 'utf8'));
  return packages[`node_modules/${name}`]?.version;
}

if (argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8')));
