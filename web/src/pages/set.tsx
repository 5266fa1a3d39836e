/** A set of jobs, or the jobs of a commit: how they depend on each other, their matrices, and what to run again. */

import { useMemo } from "preact/hooks";
import { useParams, useSearchParams } from "wouter-preact";

import { cancelJob, counted } from "../jobs/acts";
import { Action, Copy } from "../parts/action";
import { command } from "../parts/command";
import { Page, Shown } from "../parts/page";
import { together } from "../parts/together";
import { useNow } from "../parts/time";
import { SetGraph } from "../sets/graph";
import { GridCard } from "../sets/grid";
import { gridsOf } from "../sets/matrix";
import { current } from "../sets/members";
import { longestPath } from "../sets/path";
import { RerunCard } from "../sets/rerun-card";
import { rerunOf } from "../sets/rerun";
import { Summary } from "../sets/summary";
import { SetTable } from "../sets/table";
import { useSet, type SetAddress, type WatchedSet } from "../sets/use-set";
import "../style/sets.css";

/** How often times of what still runs are worked out again, in seconds. */
const CLOCK = 10;

export default function SetPage() {
  const { id = "" } = useParams<{ id: string }>();
  const [search] = useSearchParams();
  const of: SetAddress = { id, owner: search.get("owner") ?? "" };
  const watched = useSet(of);
  const isCommit = search.get("tag") === "commit";
  const path = isCommit ? { title: "Commits", to: "/commits" } : { title: "Jobs", to: "/" };
  return (
    <Page title={`${isCommit ? "Commit" : "Set"} ${isCommit ? id.slice(0, 12) : id}`} path={[path]} actions={<Actions of={of} watched={watched} />}>
      <Shown of={watched}>{({ owner }) => <Whole owner={owner} watched={watched} />}</Shown>
    </Page>
  );
}

function Whole({ owner, watched }: { owner: string; watched: WatchedSet }) {
  const { set } = watched;
  const now = useNow(CLOCK);
  const longest = useMemo(() => longestPath(set, now), [set, now]);
  const path = useMemo(() => longest.members.map(({ id }) => id), [longest]);
  const grids = useMemo(() => gridsOf(current(set)), [set]);
  const rerun = useMemo(() => rerunOf(set), [set]);
  return (
    <>
      <div class="set-top">
        <Summary set={set} path={longest} owner={owner} now={now} isCut={watched.more !== undefined} />
        <RerunCard of={rerun} set={set} then={watched.refresh} />
      </div>
      <SetGraph set={set} grids={grids} path={path} now={now} />
      {grids.length > 0 && <h2>Matrices</h2>}
      <div class="grids">
        {grids.map((grid) => (
          <GridCard key={grid.name} grid={grid} now={now} />
        ))}
      </div>
      <h2>Jobs</h2>
      <SetTable set={set} path={path} now={now} />
    </>
  );
}

function Actions({ of: { id, owner }, watched }: { of: SetAddress; watched: WatchedSet }) {
  // those that wait for others are ended before these, else they would fail by it
  const open = watched.set.members.filter((each) => each.state !== "settled").reverse();
  const list = command("penstock", "job", "list", "--set", id, ...(owner ? ["--owner", owner] : []), "--no-limit");
  return (
    <>
      {open.length > 0 && (
        <Action
          title={`Cancel ${counted(open.length)}`}
          isDangerous
          question={`All that has not settled, ${counted(open.length)}, will be cancelled. Outputs that were uploaded are kept.`}
          run={() => together(open.map((each) => each.id), cancelJob, "are being cancelled", 1)}
          done={`${counted(open.length)} being cancelled`}
          then={watched.refresh}
        />
      )}
      <Copy text={list} title="Copy as command" />
    </>
  );
}
