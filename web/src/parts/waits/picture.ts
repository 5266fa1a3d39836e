/** The nodes and edges that are drawn of who waits for whom. Pure. */

import type { GraphData, GraphEdge, GraphNode } from "../graph/model";
import { deedsOf, type Job, type Pile, type Pool, type Waits } from "./groups";

/** What is drawn. Piles that are open, and piles of one, are drawn as their jobs. Pools without a job are left out. */
export function pictureOf({ pools }: Waits, piles: readonly Pile[], isOpen: (pile: string) => boolean): GraphData {
  const drawn = piles.flatMap((pile) =>
    pile.jobs.length === 1 || isOpen(pile.id)
      ? pile.jobs.map((job) => ({ node: jobNode(job), of: job }))
      : [{ node: pileNode(pile), of: pile.jobs[0] }],
  );
  const touched = new Set(drawn.flatMap(({ of }) => [...of.waits, ...of.holds]));
  const nodes = [...pools.values()].filter(({ id }) => touched.has(id)).map(poolNode);
  return {
    nodes: [...nodes, ...drawn.map(({ node }) => node)],
    edges: drawn.flatMap(({ node, of }) => edgesOf(node.id, of)),
  };
}

const edgesOf = (id: string, { waits, holds }: Job): GraphEdge[] => [
  ...waits.map((pool): GraphEdge => ({ from: id, to: pool, kind: "waits" })),
  ...holds.map((pool): GraphEdge => ({ from: pool, to: id })),
];

function poolNode({ id, label, waiting, holders }: Pool): GraphNode {
  const [wait, hold] = [waiting.length, holders.length];
  const waits = wait > 0 && `${wait} ${wait === 1 ? "waits" : "wait"}`;
  const holds = hold > 0 && `${hold} ${hold === 1 ? "holds" : "hold"}`;
  const isPaused = label.endsWith(", paused"); // the service says it nowhere else in a graph
  return {
    id,
    label: id,
    note: [isPaused && "paused", waits, holds].filter(Boolean).join(", "),
    title: `${label}${waits ? `, ${waits}` : ""}`,
    href: `/pools/${id}`,
    sign: isPaused ? "‖" : wait ? "…" : "■",
    tone: isPaused ? "bad" : wait ? "wait" : "live",
    shape: "pool",
  };
}

function jobNode(job: Job): GraphNode {
  const name = job.name || job.id;
  return {
    id: job.id,
    label: name,
    ...(job.owner && { note: job.owner }),
    title: `${name}${job.owner && ` of ${job.owner}`} ${deedsOf(job)}`,
    href: `/jobs/${job.id}`,
    ...look(job),
  };
}

function pileNode({ id, jobs }: Pile): GraphNode {
  const [first] = jobs;
  const owners = new Set(jobs.map((job) => job.owner));
  const whose = owners.size === 1 && first.owner ? ` of ${first.owner}` : "";
  return {
    id,
    label: `${jobs.length} jobs${whose}`,
    note: namesOf(jobs),
    title: `${jobs.length} jobs${whose} ${deedsOf(first, false)}`,
    href: `/graph?pool=${encodeURIComponent(first.waits[0] ?? first.holds[0] ?? "")}`,
    shape: "pile",
    ...look(first),
  };
}

/** The names of jobs, each once. */
export function namesOf(jobs: readonly Job[]): string {
  const names = [...new Set(jobs.map((job) => job.name || job.id))];
  return names.length > 3 ? `${names.slice(0, 2).join(", ")} and ${names.length - 2} more` : names.join(", ");
}

/** Whoever waits is marked so, whatever it holds. */
const look = ({ waits }: Job): Pick<GraphNode, "sign" | "tone"> =>
  waits.length ? { sign: "…", tone: "wait" } : { sign: "■", tone: "live" };
