// peers: a graph -> where dagre or elkjs puts its boxes, as a page with xyflow would have them laid out.

export interface Graphed {
  boxes: { id: string; width: number; height: number }[];
  links: { from: string; to: string }[];
}
type Places = Map<string, { x: number; y: number }>;

export async function dagre({ boxes, links }: Graphed, ready: () => void): Promise<Places> {
  const { Graph, layout } = await import("@dagrejs/dagre");
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 68, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) graph.setNode(box.id, { width: box.width, height: box.height });
  for (const link of links) graph.setEdge(link.from, link.to);
  ready();
  layout(graph);
  return new Map(
    boxes.map((box) => {
      const { x, y } = graph.node(box.id);
      return [box.id, { x: x - box.width / 2, y: y - box.height / 2 }];
    }),
  );
}

export async function elk({ boxes, links }: Graphed, ready: () => void): Promise<Places> {
  const { default: Elk } = await import("elkjs/lib/elk.bundled.js");
  ready();
  const found = await new Elk().layout({
    id: "root",
    layoutOptions: { "elk.algorithm": "layered", "elk.direction": "RIGHT", "elk.layered.thoroughness": "3", "elk.layered.nodePlacement.strategy": "LINEAR_SEGMENTS" },
    children: boxes.map((box) => ({ ...box })),
    edges: links.map((link, at) => ({ id: `e${at}`, sources: [link.from], targets: [link.to] })),
  });
  return new Map((found.children ?? []).map((each) => [each.id, { x: each.x ?? 0, y: each.y ?? 0 }]));
}
