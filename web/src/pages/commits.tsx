/** The commits that jobs came from, newest first. For operators. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { Copy } from "../parts/action";
import { ForOperators } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { More } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { useWatchedPages } from "../parts/watch-pages";

type Commit = Schemas["CommitView"];

const COLUMNS: Column<Commit>[] = [
  { title: "Commit", cell: (commit) => <CommitName of={commit} /> },
  { title: "Repository", cell: (commit) => commit.repository },
  { title: "Of", cell: (commit) => (commit.pull_request === null ? (commit.branch ?? "") : `pull request ${commit.pull_request}`) },
  { title: "Stage", cell: (commit) => commit.stage },
  { title: "Why", cell: (commit) => commit.why ?? "" },
  { title: "Approved by", cell: (commit) => commit.approved_by ?? "", isMinor: true },
  { title: "Since", cell: (commit) => <When at={commit.since} /> },
];

/** A commit's jobs belong to its repository, whose name as an owner has a colon. */
function CommitName({ of: { commit, repository } }: { of: Commit }) {
  const owner = encodeURIComponent(repository.replace("/", ":"));
  return (
    <Link class="mono" href={`/sets/${commit}?owner=${owner}&tag=commit`} title={commit}>
      {commit.slice(0, 12)}
    </Link>
  );
}

export default function Commits() {
  return (
    <ForOperators title="Commits">
      <List />
    </ForOperators>
  );
}

function List() {
  const commits = useWatchedPages<Commit>(
    "commits",
    (page, signal) => api.GET("/v1/github/commits", { params: { query: { ...(page && { page }) } }, signal }),
    { isOver: ({ stage }) => stage === "settled" || stage === "superseded" },
  );
  return (
    <Page title="Commits" path={[{ title: "Jobs", to: "/" }]} actions={<Copy text="penstock github status" title="Copy as command" />}>
      <Shown of={commits}>
        {() => (
          <Table
            caption="Commits"
            columns={COLUMNS}
            rows={commits.rows}
            id={(each) => `${each.repository} ${each.commit} ${each.branch ?? each.pull_request}`}
            empty="No commit has come from GitHub yet."
          />
        )}
      </Shown>
      <More load={commits.more} />
    </Page>
  );
}
