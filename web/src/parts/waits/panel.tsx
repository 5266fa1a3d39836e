/** What stands beside the graph: why a job waits, how a pool is, which jobs a pile has. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";

import { api } from "../../api/client";
import { useWatch } from "../../api/watch";
import { Linked } from "../linked";
import { JobName, PoolName } from "../names";
import { Shown } from "../page";
import { State } from "../state";
import { Lasts, When } from "../time";
import { deedsOf, type Job, type Pile, type Pool } from "./groups";

/** How many seconds an explanation is shown before it is asked for again, if the graph stays the same. */
const ASKED_EVERY = 10;
/** How many jobs of a list are shown. */
const LISTED = 100;

interface PanelProps {
  title: ComponentChildren;
  /** Whether somebody opened it just now: then it gets the focus. */
  isNew: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

export function Panel({ title, isNew, onClose, children }: PanelProps) {
  const top = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isNew) top.current?.focus({ preventScroll: window.innerWidth > 1120 });
  }, []);
  return (
    <aside class="card waits-panel" aria-label="What was chosen" onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <div class="page-top">
        <h2 ref={top} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </div>
      {children}
    </aside>
  );
}

/** Why a job is where it is: the service's sentence, and what would change it. `names`: of jobs by their ids. */
export function JobPanel({ of, names }: { of: Job; names: ReadonlyMap<string, string> }) {
  const why = useWatch(
    `why ${of.id} ${of.waits.join()} ${of.holds.join()}`,
    (signal) => api.GET("/v1/jobs/{job}/why", { params: { path: { job: of.id } }, signal }),
    { every: ASKED_EVERY },
  );
  return (
    <Shown of={why}>
      {(found) => (
        <>
          <p>
            <State of={found.state} /> for <Lasts from={found.since} />
          </p>
          <p>
            <Linked text={found.summary} names={names} />
          </p>
          <dl class="facts">
            {found.state !== "running" && found.state !== "settled" && (
              <>
                <dt>Expected start</dt>
                <dd>{found.expected_start ? <When at={found.expected_start} /> : "not known"}</dd>
              </>
            )}
            {found.basis && (
              <>
                <dt>Estimated from</dt>
                <dd>
                  <Linked text={found.basis} names={names} />
                </dd>
              </>
            )}
            {found.unblocks && (
              <>
                <dt>Goes on once</dt>
                <dd>
                  <Linked text={found.unblocks} names={names} />
                </dd>
              </>
            )}
            <Pools title="Waits for" of={of.waits} />
            <Pools title="Holds" of={of.holds} />
          </dl>
          <p>
            <Link href={`/jobs/${of.id}`}>Open the job</Link>
          </p>
        </>
      )}
    </Shown>
  );
}

function Pools({ title, of }: { title: string; of: readonly string[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <dt>{title}</dt>
      <dd>
        {of.map((pool, index) => (
          <span key={pool}>
            {index > 0 && ", "}
            <PoolName of={pool} />
          </span>
        ))}
      </dd>
    </>
  );
}

export function PoolPanel({ of }: { of: Pool }) {
  return (
    <>
      <p>{of.label}</p>
      <Jobs title="Held by" of={of.holders} none="No job holds any of it." />
      <Jobs title="Waited for by" of={of.waiting} none="Nobody waits for it." />
      <p>
        <Link href={`/pools/${of.id}`}>Open the pool</Link>
      </p>
    </>
  );
}

export function PilePanel({ of, isOpen, onToggle }: { of: Pile; isOpen: boolean; onToggle: (() => void) | undefined }) {
  return (
    <>
      <p>They {deedsOf(of.jobs[0], false)}.</p>
      {onToggle && (
        <button type="button" onClick={onToggle}>
          {isOpen ? "Draw them as one" : "Draw them singly"}
        </button>
      )}
      <Jobs title={`${of.jobs.length} jobs`} of={of.jobs} none="" />
    </>
  );
}

/** A list of jobs, or that there is none. */
function Jobs({ title, of, none }: { title: string; of: readonly Job[]; none: string }) {
  if (of.length === 0) return <p class="faint">{none}</p>;
  return (
    <>
      <h3>{title}</h3>
      <ul class="waits-jobs">
        {of.slice(0, LISTED).map((job) => (
          <li key={job.id}>
            <JobName id={job.id} name={job.name} owner={job.owner} />
          </li>
        ))}
        {of.length > LISTED && <li class="faint">and {of.length - LISTED} more</li>}
      </ul>
    </>
  );
}
