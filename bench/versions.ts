import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { cpus, type } from 'node:os';
import { type BackendName, competitionOf } from './competitions.js';

export function describeMachine(): string {
  const processors = cpus();
  return `${processors.length} × ${processors[0]?.model ?? 'processor'}, ${type()}`;
}

export async function readVersions(backend: BackendName): Promise<Record<string, string>> {
  const { others, server } = competitionOf(backend);
  const packages = others.flatMap(({ packageName }) => packageName ?? []);
  const installed = await Promise.all(packages.map(async (name) => [name, await readPackageVersion(name)] as const));
  return { node: process.version, [server.name]: readServerVersion(server.command), ...Object.fromEntries(installed) };
}

async function readPackageVersion(name: string): Promise<string> {
  const text = await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function readServerVersion([command, ...args]: readonly [string, ...string[]]): string {
  const output = execFileSync(command, args, { encoding: 'utf8', cwd: new URL('../', import.meta.url) });
  return /\d+(?:\.\d+)+/u.exec(output)?.[0] ?? 'unknown';
}
