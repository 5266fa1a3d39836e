/** What a set is, and how far: in numbers, and by its longest path. */

import { Link } from "wouter-preact";

import { Counts } from "../jobs/counts";
import { duration, When } from "../parts/time";
import { current, type JobSet } from "./members";
import type { LongestPath } from "./path";

interface Props {
  set: JobSet;
  path: LongestPath;
  owner: string;
  now: number;
  /** Whether there are more jobs than were loaded. */
  isCut: boolean;
}

export function Summary({ set, path, owner, now, isCut }: Props) {
  const members = current(set);
  const [first] = set.members;
  if (!first) return null;
  const ends = members.map(({ times }) => (times.settled ? Date.parse(times.settled) : now));
  const begin = Date.parse(members.reduce((least, { times }) => (times.submitted < least ? times.submitted : least), members[0]?.times.submitted ?? ""));
  const isOver = members.every((each) => each.state === "settled");
  return (
    <section class="card" aria-label="Summary">
      {isCut && <p class="problem">There are more jobs than these {set.members.length}, which were submitted first.</p>}
      <Counts of={members} />
      <dl class="facts">
        <dt>Owner</dt>
        <dd>{owner}</dd>
        <dt>Jobs</dt>
        <dd>
          {members.length}
          {set.repeated.size > 0 && `, and ${set.repeated.size} of the same names that were submitted before`}
        </dd>
        <dt>Submitted</dt>
        <dd>
          <When at={first.times.submitted} />
        </dd>
        <dt>{isOver ? "Took" : "So far"}</dt>
        <dd>{duration((Math.max(...ends) - begin) / 1000)}</dd>
        <dt>Longest path</dt>
        <dd>
          <Path of={path} />
        </dd>
      </dl>
    </section>
  );
}

function Path({ of: { members, waited, ran } }: { of: LongestPath }) {
  return (
    <>
      <span class="steps">
        {members.map(({ id, name }) => (
          <Link key={id} href={`/jobs/${id}`}>
            {name}
          </Link>
        ))}
      </span>{" "}
      {duration(waited + ran)}: scripts ran for {duration(ran)}, and {duration(waited)} were spent waiting for pools and machines
    </>
  );
}
