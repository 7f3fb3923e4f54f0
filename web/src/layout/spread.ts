// layout/spread: where each box of a column would like to be, from top to bottom -> where it is, none over another.

/**
 * The closest positions to those wanted that keep the order and `room` between neighbours (least squares, by
 * pooling whatever would overlap). Where nothing would, everything is exactly where it wants to be.
 */
export function spread(wanted: ArrayLike<number>, room: ArrayLike<number>): Float64Array {
  const count = wanted.length;
  const offset = new Float64Array(count);
  for (let at = 1; at < count; at++) offset[at] = offset[at - 1]! + room[at - 1]!;
  const first: number[] = [];
  const sums: number[] = [];
  const sizes: number[] = [];
  for (let at = 0; at < count; at++) {
    let begin = at;
    let sum = wanted[at]! - offset[at]!;
    let size = 1;
    while (first.length && sums[sums.length - 1]! / sizes[sizes.length - 1]! > sum / size) {
      begin = first.pop()!;
      sum += sums.pop()!;
      size += sizes.pop()!;
    }
    first.push(begin);
    sums.push(sum);
    sizes.push(size);
  }
  const found = new Float64Array(count);
  first.forEach((begin, block) => {
    const size = sizes[block]!;
    const base = sums[block]! / size;
    // alone, it is where it wants to be, to the last bit: subtracting an offset and adding it again is not
    for (let at = begin; at < begin + size; at++) found[at] = size === 1 ? wanted[at]! : base + offset[at]!;
  });
  return found;
}

/** The top closest to the one wanted where a box of this height fits between those that are there, sorted by top. */
export function nearestFree(
  taken: { top: number; bottom: number }[],
  wanted: number,
  height: number,
  gap: number,
): number {
  let best = Number.NaN;
  const offer = (low: number, high: number) => {
    if (high < low) return;
    const near = Math.min(Math.max(wanted, low), high);
    if (Number.isNaN(best) || Math.abs(near - wanted) < Math.abs(best - wanted)) best = near;
  };
  let free = Number.NEGATIVE_INFINITY;
  for (const each of taken) {
    offer(free, each.top - gap - height);
    free = Math.max(free, each.bottom + gap);
  }
  offer(free, Number.POSITIVE_INFINITY);
  return best;
}
