export interface StoredKey {
  readonly key: string;
  readonly value: string;
  readonly createdAt: bigint;
  readonly lease: bigint;
}

interface Kv {
  readonly key: string;
  readonly value?: string;
  readonly create_revision: string;
  readonly lease?: string;
}

/** Sees and does as an operator, over etcd's JSON gateway: nothing of it goes through the code under test. */
export class EtcdOperator {
  constructor(
    private readonly urls: readonly string[],
    private readonly token?: string,
  ) {}

  /** All keys that begin with `prefix`, the oldest first. */
  async list(prefix: string): Promise<StoredKey[]> {
    const end = Buffer.from(prefix);
    end.writeUInt8(end.readUInt8(end.length - 1) + 1, end.length - 1);
    const range = {
      key: base64(prefix),
      range_end: end.toString('base64'),
      sort_order: 'ASCEND',
      sort_target: 'CREATE',
    };
    const { kvs = [] } = await this.ask<{ kvs?: readonly Kv[] }>('kv/range', range);
    return kvs.map(({ key, value = '', create_revision, lease = '0' }) => ({
      key: text(key),
      value: text(value),
      createdAt: BigInt(create_revision),
      lease: BigInt(lease),
    }));
  }

  async remove(key: string): Promise<void> {
    await this.ask('kv/deleterange', { key: base64(key) });
  }

  async put(key: string, value: string): Promise<void> {
    await this.ask('kv/put', { key: base64(key), value: base64(value) });
  }

  async leases(): Promise<bigint[]> {
    const { leases = [] } = await this.ask<{ leases?: readonly { ID: string }[] }>('lease/leases', {});
    return leases.map(({ ID }) => BigInt(ID));
  }

  async revoke(lease: bigint): Promise<void> {
    await this.ask('lease/revoke', { ID: String(lease) });
  }

  async revision(): Promise<bigint> {
    const { header } = await this.ask<{ header: { revision: string } }>('kv/range', { key: base64('nothing') });
    return BigInt(header.revision);
  }

  /** Forgets all history before now. */
  async compact(): Promise<void> {
    await this.ask('kv/compaction', { revision: String(await this.revision()), physical: true });
  }

  /** Says that there is room again. */
  async disarm(): Promise<void> {
    const { alarms = [] } = await this.ask<{ alarms?: readonly object[] }>('maintenance/alarm', {});
    for (const alarm of alarms) await this.ask('maintenance/alarm', { ...alarm, action: 'DEACTIVATE' });
  }

  /** Takes the member that clients reach at `url` out of the cluster, for good. */
  async removeMember(url: string): Promise<void> {
    // Members that stay: the removed one may be gone before it has answered.
    const others = new EtcdOperator(
      this.urls.filter((other) => other !== url),
      this.token,
    );
    const { members } = await others.ask<{ members: readonly { ID: string; clientURLs?: readonly string[] }[] }>(
      'cluster/member/list',
      {},
    );
    const member = members.find(({ clientURLs = [] }) => clientURLs.includes(url));
    await others.ask('cluster/member/remove', { ID: member?.ID });
  }

  /** Anything else of https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/ */
  async ask<Answer>(path: string, body: object): Promise<Answer> {
    let failure: unknown;
    for (const url of this.urls) {
      try {
        return await this.#ask<Answer>(url, path, body);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #ask<Answer>(url: string, path: string, body: object): Promise<Answer> {
    const answer = await fetch(`${url}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(5_000),
      headers: this.token === undefined ? {} : { authorization: this.token },
    });
    const said = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${said}`);
    return JSON.parse(said) as Answer;
  }
}

function base64(value: string): string {
  return Buffer.from(value).toString('base64');
}

function text(value: string): string {
  return Buffer.from(value, 'base64').toString();
}
