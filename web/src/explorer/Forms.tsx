// explorer/Forms: the drawn graph as a list or as a tree: the same nodes in words, for eyes and screen readers alike.
import { plural } from "../format.ts";
import { type Drawn, neighbours, titleOf } from "../lineage/picture.ts";
import { type Branch, listed, toCsv, trees } from "../lineage/words.ts";
import { save } from "../parts/files.ts";
import { Rows } from "../parts/Rows.tsx";
import { Kind, NodeLink, StateBadge, Time } from "../parts/Words.tsx";
import { setView, view } from "./session.ts";
import { expand } from "./view.ts";

export function ListForm({ graph }: { graph: Drawn }) {
  const nodes = listed(graph);
  const around = neighbours(graph.edges);
  const rows = nodes.map((node) => [
    node.id,
    node.type,
    Number.isFinite(node.distance) ? node.distance : null,
    around.up.get(node.id)?.length ?? 0,
    around.down.get(node.id)?.length ?? 0,
    node.lastRun?.state ?? "",
  ]);
  return (
    <div class="form">
      <p>
        {plural(nodes.length, "node")}, {plural(graph.edges.length, "edge")}.{" "}
        <button
          type="button"
          onClick={() =>
            save(
              "lineage.csv",
              toCsv([["id", "type", "hops", "upstream", "downstream", "state"], ...rows]),
              "text/csv",
            )
          }
        >
          Save as CSV
        </button>
      </p>
      <Rows
        items={nodes}
        height={40}
        label="Nodes, the nearest first"
        row={(node) => (
          <>
            <span class="grow" data-node={node.id}>
              {/^(dataset|job|run):/.test(node.id) && node.type !== "DATASET_VERSION" ? (
                <NodeLink id={node.id} most={80} />
              ) : (
                titleOf(node)
              )}
            </span>
            <span class="cell muted">{node.namespace}</span>
            <span class="cell">
              {node.type === "JOB" && node.lastRun ? <StateBadge state={node.lastRun.state} /> : ""}
            </span>
            <span class="cell muted">
              {Number.isFinite(node.distance) ? plural(node.distance ?? 0, "hop") : "expanded"}
            </span>
            <span class="cell">
              <Time of={node.lastSeen} />
            </span>
          </>
        )}
      />
    </div>
  );
}

export function TreeForm({ graph }: { graph: Drawn }) {
  const { up, down, apart } = trees(graph);
  return (
    <div class="form">
      <p data-node={graph.start}>
        <NodeLink id={graph.start} most={80} />
      </p>
      <h2>Upstream</h2>
      {up.length ? <Branches of={up} /> : <p class="muted">Nothing is known to come before it.</p>}
      <h2>Downstream</h2>
      {down.length ? <Branches of={down} /> : <p class="muted">Nothing is known to read it.</p>}
      {apart.length > 0 && (
        <>
          <h2>Also shown</h2>
          <ul class="branches">
            {apart.map((node) => (
              <li key={node.id} data-node={node.id}>
                {titleOf(node)}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Branches({ of }: { of: Branch[] }) {
  return (
    <ul class="branches">
      {of.map((branch) => (
        <li key={branch.id} {...(branch.again ? {} : { "data-node": branch.id })}>
          {branch.node.type === "GROUP" || branch.node.type === "DATASET_VERSION" ? (
            <>
              <Kind kind="group" /> {titleOf(branch.node)}
            </>
          ) : (
            <NodeLink id={branch.id} most={80} />
          )}{" "}
          {branch.node.lastRun && <StateBadge state={branch.node.lastRun.state} brief />}
          {branch.again && <span class="muted"> (told above)</span>}
          {!branch.again &&
            (["up", "down"] as const).map(
              (side) =>
                branch.node.more?.[side] && (
                  <button
                    key={side}
                    type="button"
                    onClick={() => setView(expand(view.value, branch.id, side))}
                  >
                    +{branch.node.more[side]} {side === "up" ? "upstream" : "downstream"}
                  </button>
                ),
            )}
          {branch.branches.length > 0 && <Branches of={branch.branches} />}
        </li>
      ))}
    </ul>
  );
}
