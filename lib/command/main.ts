#!/usr/bin/env node
import { runCommand } from './run-command.js';

async function main(): Promise<void> {
  // A reader such as `head` may close the pipe early. Without a listener, that error would end this process with a
  // stack trace.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
  const { code, output, errorOutput } = await runCommand(process.argv.slice(2), process.env);
  if (output !== '') process.stdout.write(`${output}\n`);
  if (errorOutput !== undefined) process.stderr.write(`${errorOutput}\n`);
  process.exitCode = code;
}

void main();
