/** The panel beside the graph, for whatever was chosen there. */

import type { Pile, Waits } from "./groups";
import { JobPanel, Panel, PilePanel, PoolPanel } from "./panel";

interface Props {
  /** The id of what was chosen: a job, a pool or a pile. */
  at: string;
  waits: Waits;
  piles: readonly Pile[];
  isNew: boolean;
  isOpen: (pile: string) => boolean;
  /** Draws a pile as one or singly; undefined where all are drawn singly. */
  onToggle: ((pile: string) => void) | undefined;
  onClose: () => void;
}

export function Beside({ at, waits: { jobs, pools }, piles, isNew, isOpen, onToggle, onClose }: Props) {
  const names = new Map([...jobs.values()].filter(({ name }) => name).map(({ id, name }) => [id, name]));
  const [job, pool, pile] = [jobs.get(at), pools.get(at), piles.find(({ id }) => id === at)];
  const own = job && piles.find(({ jobs: all }) => all.includes(job) && all.length > 1);
  const title = job ? job.name || job.id : pool ? pool.id : pile ? `${pile.jobs.length} jobs` : "It is gone";
  return (
    <Panel key={at} title={title} isNew={isNew} onClose={onClose}>
      {job && <JobPanel of={job} names={names} />}
      {own && onToggle && isOpen(own.id) && (
        <button type="button" onClick={() => onToggle(own.id)}>
          Draw it as one with {own.jobs.length === 2 ? "the other" : `${own.jobs.length - 1} others`}
        </button>
      )}
      {pool && <PoolPanel of={pool} />}
      {pile && <PilePanel of={pile} isOpen={isOpen(pile.id)} onToggle={onToggle && (() => onToggle(pile.id))} />}
      {!job && !pool && !pile && <p>It does not wait any more, and holds nothing.</p>}
    </Panel>
  );
}
