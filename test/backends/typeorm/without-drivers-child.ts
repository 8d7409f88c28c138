import Module from 'node:module';

const load: unknown = Reflect.get(Module, '_load');

/** As where nobody has installed a driver. */
Reflect.set(Module, '_load', (name: string, ...rest: unknown[]): unknown => {
  if (/(^|node_modules[\\/])(pg|mysql2?)$/u.test(name)) {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  }
  if (typeof load !== 'function') throw new Error('this Node.js loads modules in another way');
  return Reflect.apply(load, Module, [name, ...rest]);
});

const { LockService } = await import('nestjs-distributed-lock/core');
const { typeorm } = await import('nestjs-distributed-lock/typeorm');

for (const type of ['postgres', 'mariadb'] as const) {
  for (const strategy of ['lease', 'row', 'session'] as const) {
    const options = { type, url: `${type}://localhost:1/none` } as const;
    const service = new LockService(typeorm({ dataSource: { options }, strategy }));
    const error = await service.start().catch((reason: unknown) => reason);
    process.stdout.write(`${type} ${strategy}: ${String(error)}\n`);
    await service.close();
  }
}
