import { Logger } from '@nestjs/common';
import { createApp } from './create-app.js';
import { readSettings } from './settings.js';

try {
  const settings = readSettings(process.env);
  const app = await createApp(settings);
  await app.listen(settings.port);
  const url = (await app.getUrl()).replace('[::1]', 'localhost');
  new Logger('FlashSale').log(`${url}  locks: ${settings.backend}, orders: ${settings.database}`);
  reportToParent(url);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

/** The stampede starts this application as its child: it wants to know where, and leaves nothing behind when it dies. */
function reportToParent(url: string): void {
  if (!process.send) return;
  process.once('disconnect', () => process.exit());
  process.send({ url });
}
