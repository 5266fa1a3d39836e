/** The rows of the list of jobs, those of a set together, each with a box to select it. */

import { useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";

import { JobName, PoolName } from "../parts/names";
import { State } from "../parts/state";
import { Table, type Column, type Group } from "../parts/table";
import { Lasts, When } from "../parts/time";
import { Counts } from "./counts";
import { groupsOf, SET, type Job, type JobGroup } from "./groups";
import { useListKeys } from "./keys";

interface Props {
  jobs: readonly Job[];
  more: (() => void) | undefined;
  selected: ReadonlyMap<string, Job>;
  select: (jobs: readonly Job[], isSelected: boolean) => void;
  /** What stands there when nothing was found. */
  empty: string;
  /** Who looks: one's own name need not stand beside each job. */
  me: string;
}

/** Larger sets are closed until somebody opens them. */
const SMALL_SET = 8;

export function JobList({ jobs, more, selected, select, empty, me }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  useListKeys(list, more);

  const toggle = (key: string) => setToggled((before) => new Set(before.has(key) ? [...before].filter((each) => each !== key) : [...before, key]));
  const groups = groupsOf(jobs).map((group): Group<Job> => {
    if (group.set === undefined) return { key: group.key, rows: group.jobs };
    const isOpen = group.jobs.length <= SMALL_SET !== toggled.has(group.key);
    const head = <SetHead group={group} isOpen={isOpen} toggle={() => toggle(group.key)} selected={selected} select={select} />;
    return { key: group.key, head, rows: isOpen ? group.jobs : [] };
  });
  return (
    <div ref={list}>
      <Table
        caption="Jobs"
        columns={[selectColumn(selected, select), ...columns(me)]}
        rows={[]}
        groups={groups}
        id={(job) => job.id}
        empty={empty}
        isMarked={(job) => selected.has(job.id)}
      />
    </div>
  );
}

function selectColumn(selected: Props["selected"], select: Props["select"]): Column<Job> {
  const box = (job: Job) => (
    <input
      type="checkbox"
      aria-label={`Select ${job.name} ${job.id}`}
      checked={selected.has(job.id)}
      onChange={(event) => select([job], event.currentTarget.checked)}
    />
  );
  return { title: "Select", cell: box };
}

const columns = (me: string): Column<Job>[] => [
  { title: "State", cell: (job) => <State of={job.state} outcome={job.outcome} /> },
  { title: "Job", cell: (job) => <JobName id={job.id} name={job.name} owner={job.owner === me ? "" : job.owner} /> },
  { title: "Why", cell: (job) => <Why job={job} /> },
  { title: "Target", cell: (job) => <Target job={job} />, isMinor: true },
  { title: "Tags", cell: (job) => <Tags of={job.tags} />, isMinor: true },
  { title: "Submitted", cell: (job) => <When at={job.times.submitted} />, isNumber: true },
  { title: "Ran for", cell: (job) => <Lasts from={job.times.started} to={job.times.settled} />, isNumber: true },
];

/** Why it did not succeed, or what it waits for. That a script succeeded says its state. */
function Why({ job }: { job: Job }) {
  if (job.outcome === "succeeded") return null;
  if (job.reason) return <span class="reason">{job.reason}</span>;
  if (!job.waits_for) return null;
  return <span>waits for {/^(target|resource|quota)\//.test(job.waits_for) ? <PoolName of={job.waits_for} /> : job.waits_for}</span>;
}

function Target({ job }: { job: Job }) {
  const now = job.target_resolved;
  return <span class="nowrap" title={now && now !== job.target ? `asked for ${job.target}` : undefined}>{now || job.target}</span>;
}

function Tags({ of }: { of: Record<string, string> }) {
  const tags = Object.entries(of).filter(([name]) => name !== SET);
  if (tags.length === 0) return null;
  return (
    <span class="tags">
      {tags.map(([name, value]) => (
        <Link key={name} href={`/?tag=${encodeURIComponent(`${name}=${value}`)}`} title={`All your jobs with ${name}=${value}`}>
          {name}={value.length > 16 ? `${value.slice(0, 12)}…` : value}
        </Link>
      ))}
    </span>
  );
}

interface HeadProps extends Pick<Props, "selected" | "select"> {
  group: JobGroup;
  isOpen: boolean;
  toggle: () => void;
}

function SetHead({ group, isOpen, toggle, selected, select }: HeadProps) {
  const { set = "", owner, jobs } = group;
  return (
    <span class="set-head">
      <input
        type="checkbox"
        aria-label={`Select the jobs of set ${set} that are loaded`}
        checked={jobs.every((job) => selected.has(job.id))}
        onChange={(event) => select(jobs, event.currentTarget.checked)}
      />
      <button type="button" class="quiet" aria-expanded={isOpen} aria-label={`Jobs of set ${set}`} onClick={toggle}>
        {isOpen ? "▾" : "▸"}
      </button>
      <span>
        Set <Link href={`/sets/${encodeURIComponent(set)}?owner=${encodeURIComponent(owner)}`}>{set}</Link> <span class="faint">{owner}</span>
      </span>
      <span class="faint">{jobs.length} loaded:</span>
      <Counts of={jobs} />
    </span>
  );
}
