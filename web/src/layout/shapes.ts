// layout/shapes: what the layout takes and gives. Plain data, so that it crosses to a worker and back.

export interface Box {
  id: string;
  width: number;
  height: number;
}

/** From one box to another; a port is how far below the top of its box the line ends, else its middle. */
export interface Link {
  from: string;
  to: string;
  fromPort?: number;
  toPort?: number;
}

/** Where a box stands: its column, and the upper left corner. */
export interface Place {
  column: number;
  x: number;
  y: number;
}

export interface Point {
  x: number;
  y: number;
}

export interface Order {
  boxes: Box[];
  links: Link[];
  /** Where boxes of a picture before this one stood: they stay there unless an edge forces them on. */
  kept?: Map<string, Place>;
  /** The box that stands at 0, 0 when nothing is kept. */
  anchor?: string;
  /** How much work may go into fewer crossings: visited edges, not seconds, so that the result is always the same. */
  effort?: number;
}

export interface Picture {
  places: Map<string, Place>;
  /** By the position of a link: the points it passes on its way past other columns. */
  routes: Map<number, Point[]>;
  /** Links that run against the rest, because they close a cycle. */
  back: Set<number>;
  /** How often lines cross, where it was counted. */
  crossings: number;
}

export const COLUMN_STEP = 292;
export const GAP = 18;
/** Room that a line takes which passes a column. */
export const LANE = 10;
