import { EtcdOperator } from './operator.js';
import type { EtcdWorld } from './etcd-world.js';

/** The hash of a password else takes a tenth of a second of the processor. */
export const CHEAP = ['--bcrypt-cost', '4'];
export const CREDENTIALS = { username: 'shop', password: 'canary-7e1f' };

/** Users are in force from now on, and this one has the rights that locks need. */
export async function enableUsers(world: Pick<EtcdWorld, 'operator' | 'server'>): Promise<EtcdOperator> {
  const { operator } = world;
  await operator.ask('auth/user/add', { name: 'root', password: 'root' });
  await operator.ask('auth/user/grant', { user: 'root', role: 'root' });
  await operator.ask('auth/user/add', { name: CREDENTIALS.username, password: CREDENTIALS.password });
  await operator.ask('auth/role/add', { name: 'locks' });
  await operator.ask('auth/user/grant', { user: CREDENTIALS.username, role: 'locks' });
  const perm = { permType: 'READWRITE', key: base64('lock/'), range_end: base64('lock0') };
  await operator.ask('auth/role/grant', { name: 'locks', perm });
  await operator.ask('auth/enable', {});
  return asRoot(world);
}

export async function asRoot(world: Pick<EtcdWorld, 'operator' | 'server'>): Promise<EtcdOperator> {
  const root = { name: 'root', password: 'root' };
  const { token } = await world.operator.ask<{ token: string }>('auth/authenticate', root);
  return new EtcdOperator(world.server.urls, token);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
