/** The graph of a set, with matrices as piles while there are many jobs. */

import { useMemo, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";

import { Graph } from "../parts/graph/graph";
import type { Grid } from "./matrix";
import type { JobSet } from "./members";
import { pictureOf, pilesOf } from "./picture";

/** From how many jobs on matrices are piled up at first. */
const MANY = 60;

interface Props {
  set: JobSet;
  grids: readonly Grid[];
  path: readonly string[];
  now: number;
}

export function SetGraph({ set, grids, path, now }: Props) {
  const [, go] = useLocation();
  const [chosen, setPiled] = useState<boolean>();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const isPiled = chosen ?? set.members.length > MANY;
  const all = useMemo(() => pilesOf(grids), [grids]);
  const piles = useMemo(() => (isPiled ? all.filter(({ id }) => !opened.has(id)) : []), [all, isPiled, opened]);
  const graph = useMemo(() => pictureOf(set, { piles, path, now }), [set, piles, path, now]);
  const open = (id: string) => {
    if (piles.some((pile) => pile.id === id)) setOpened((before) => new Set([...before, id]));
    else go(`/jobs/${id}`);
  };
  const pile = (isOn: boolean) => {
    setPiled(isOn);
    setOpened(new Set());
  };
  return (
    <section class="set-graph" aria-labelledby="graph">
      <div class="page-top">
        <h2 id="graph">What depends on what</h2>
        {all.length > 0 && (
          <span class="actions">
            <label class="check">
              <input type="checkbox" checked={isPiled} onChange={(event) => pile(event.currentTarget.checked)} />
              Jobs of a matrix as one
            </label>
            {opened.size > 0 && (
              <button type="button" class="quiet" onClick={() => setOpened(new Set())}>
                Close all
              </button>
            )}
          </span>
        )}
      </div>
      <Graph label="What depends on what" graph={graph} onOpen={open} />
      <p class="faint">
        Thick lines: the longest path. Drag to move, Ctrl and the wheel to zoom, arrow keys from job to job. The table below says the same.
      </p>
    </section>
  );
}
