#!/usr/bin/env node
import { runCommand } from './run-command.js';

async function main(): Promise<void> {
  // A reader such as `head` may be satisfied before all is written. Without a listener this would end us with a trace.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
  const { code, output, complaint } = await runCommand(process.argv.slice(2), process.env);
  if (output !== '') process.stdout.write(`${output}\n`);
  if (complaint !== undefined) process.stderr.write(`${complaint}\n`);
  process.exitCode = code;
}

void main();
