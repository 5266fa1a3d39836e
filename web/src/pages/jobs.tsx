/** The list of jobs, newest first. Its filters are those of `penstock job list`, and stand in the address. */

import { useState } from "preact/hooks";
import { Link, useSearchParams } from "wouter-preact";

import { api } from "../api/client";
import { JobFilterFields } from "../jobs/filters";
import type { Job } from "../jobs/groups";
import { JobList } from "../jobs/list";
import { commandOf, filtersOf, problemOf, queryOf } from "../jobs/query";
import { Selected } from "../jobs/selected";
import { ViewsBar } from "../jobs/views-bar";
import { Page, Shown } from "../parts/page";
import { More } from "../parts/pages";
import { useWatchedPages } from "../parts/watch-pages";
import { useSession } from "../session";
import "../style/jobs.css";

export default function Jobs() {
  const { isOperator } = useSession();
  const [search, setSearch] = useSearchParams();
  const filters = filtersOf(search);
  const problem = problemOf(filters, Date.now());

  const change = (changes: Record<string, string>) => setSearch((before) => changed(before, changes), { replace: true });
  const setTags = (tags: string[]) => setSearch((before) => tagged(before, tags), { replace: true });
  return (
    <Page title="Jobs" actions={isOperator && <Link href="/commits">Commits</Link>}>
      <ViewsBar search={search.toString()} isOperator={isOperator} command={commandOf(filters, Date.now())} />
      <JobFilterFields
        filters={filters}
        change={change}
        addTag={(tag) => tag.trim() && setTags([...new Set([...filters.tags, tag.trim()])])}
        removeTag={(tag) => setTags(filters.tags.filter((each) => each !== tag))}
        isOperator={isOperator}
      />
      {problem ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : (
        <Found key={search.toString()} search={search.toString()} />
      )}
    </Page>
  );
}

/** The jobs that an address asks for. */
function Found({ search }: { search: string }) {
  const { who } = useSession();
  const filters = filtersOf(new URLSearchParams(search));
  const [selected, setSelected] = useState<ReadonlyMap<string, Job>>(new Map());
  const jobs = useWatchedPages<Job>(
    `jobs?${search}`,
    (page, signal) => api.GET("/v1/jobs", { signal, params: { query: queryOf(filters, Date.now(), page) } }),
    { isOver: (job) => job.state === "settled" },
  );
  const select = (rows: readonly Job[], isSelected: boolean) =>
    setSelected((before) => {
      const after = new Map(before);
      for (const job of rows)
        if (isSelected) after.set(job.id, job);
        else after.delete(job.id);
      return after;
    });
  const fresh = new Map(jobs.rows.map((job) => [job.id, job]));
  const chosen = [...selected.values()].map((job) => fresh.get(job.id) ?? job);
  return (
    <>
      <Shown of={jobs}>
        {() => <JobList jobs={jobs.rows} more={jobs.more} selected={selected} select={select} empty={emptyFor(search)} me={who?.name ?? ""} />}
      </Shown>
      <div class="list-end">
        <More load={jobs.more} />
        {jobs.rows.length > selected.size && (
          <button type="button" class="quiet" onClick={() => select(jobs.rows, true)}>
            Select all {jobs.rows.length}
          </button>
        )}
        {jobs.rows.length > 0 && (
          <p class="faint">
            {jobs.rows.length} shown{jobs.more ? ", there are more" : ""}. Keys: <kbd>j</kbd> <kbd>k</kbd> next and previous, <kbd>Enter</kbd> opens,{" "}
            <kbd>x</kbd> selects, <kbd>/</kbd> filters.
          </p>
        )}
      </div>
      <Selected jobs={chosen} clear={() => setSelected(new Map())} then={jobs.refresh} />
    </>
  );
}

const emptyFor = (search: string): string =>
  search ? "No job looks like that." : "You have no jobs yet: penstock job run FILE submits one.";

function changed(before: URLSearchParams, changes: Record<string, string>): URLSearchParams {
  const after = new URLSearchParams(before);
  for (const [name, value] of Object.entries(changes))
    if (value.trim()) after.set(name, value.trim());
    else after.delete(name);
  return after;
}

function tagged(before: URLSearchParams, tags: string[]): URLSearchParams {
  const after = new URLSearchParams(before);
  after.delete("tag");
  for (const tag of tags) after.append("tag", tag);
  return after;
}
