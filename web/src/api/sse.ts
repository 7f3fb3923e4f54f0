// api/sse: a block of a stream of server-sent events -> its id, its kind and its data.

export function parse(block: string): { id?: string; event?: string; data: string } {
  const found: { id?: string; event?: string; data: string } = { data: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const value = line.slice(at + 1).replace(/^ /, "");
    const name = line.slice(0, at);
    if (name === "data") found.data += (found.data ? "\n" : "") + value;
    else if (name === "id") found.id = value;
    else if (name === "event") found.event = value;
  }
  return found;
}
