/** @param text `host:port`, or several with commas between them */
export function addresses(text: string): { readonly host: string; readonly port: number }[] {
  return text.split(',').map((address) => {
    const { hostname, port } = new URL(`tcp://${address}`);
    return { host: hostname.replace(/^\[|\]$/gu, ''), port: Number(port) };
  });
}
