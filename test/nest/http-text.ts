/** The status and the body of an answer, in a line. */
export async function text(address: string, init?: RequestInit): Promise<string> {
  const response = await fetch(address, init);
  return `${response.status} ${await response.text()}`;
}
