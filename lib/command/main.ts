#!/usr/bin/env node
import { runCommand } from './run-command.js';

async function main(): Promise<void> {
  const { code, output, complaint } = await runCommand(process.argv.slice(2), process.env);
  if (output !== '') process.stdout.write(`${output}\n`);
  if (complaint !== undefined) process.stderr.write(`${complaint}\n`);
  process.exitCode = code;
}

void main();
