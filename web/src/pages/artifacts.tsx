/** Files of jobs that the service keeps: why, and until when. */

import { api, type Schemas } from "../api/client";
import { FilesNav } from "../files/nav";
import { keeperOf } from "../files/keepers";
import { Pins } from "../files/pin";
import { sizesOf } from "../files/sizes";
import { SizesCard } from "../files/sizes-card";
import { DownloadArtifact, KeeperName, WhyCard } from "../files/why-card";
import { Copy } from "../parts/action";
import { command } from "../parts/command";
import { useFilters, Wanted } from "../parts/filters";
import { JobName } from "../parts/names";
import { Page, Shown } from "../parts/page";
import { More } from "../parts/pages";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { bytes, When } from "../parts/time";
import { useWatchedPages } from "../parts/watch-pages";
import { useSession } from "../session";
import "../style/files.css";

type Artifact = Schemas["ArtifactView"];

const KINDS: Record<string, string> = { job: "jobs", pin: "pins", cache: "caches", published: "published names" };

export default function Artifacts() {
  const { isOperator } = useSession();
  const [filters, change] = useFilters();
  const by = filters["by"] ?? "";
  const chosen = filters["artifact"];
  const artifacts = useWatchedPages<Artifact>(
    `artifacts ${by}`,
    (page, signal) => api.GET("/v1/artifacts", { params: { query: { ...(by && { by }), ...(page && { page }) } }, signal }),
    { isOver: () => false }, // pins come and go
  );
  const copied = command("penstock", "artifact", "list", ...(by ? ["--by", by] : []));
  return (
    <Page title="Artifacts" actions={<Copy text={copied} title="Copy as command" />}>
      <FilesNav />
      {isOperator && (
        <div class="filters">
          <Wanted label="Of user or repository" value={by} onChange={(value) => change("by", value)} hint="yours" />
        </div>
      )}
      {chosen && <WhyCard key={chosen} artifact={chosen} close={() => change("artifact", "")} then={artifacts.refresh} />}
      <Shown of={artifacts}>
        {() => (
          <>
            <SizesCard
              of={sizesOf(artifacts.rows, ({ owners }) => (owners.length ? owners.map((each) => KINDS[keeperOf(each).kind] ?? each) : ["nothing"]))}
              title={`Of ${by || "you"}, by what keeps them`}
              isPart={artifacts.more !== undefined}
              isShared
            />
            <Table
              caption="Artifacts"
              columns={columns(chosen, (id) => change("artifact", id), artifacts.refresh)}
              rows={artifacts.rows}
              id={({ id }) => id}
              empty="There is no artifact. Jobs make them: penstock job run -O '/work/*.log' FILE."
              isMarked={({ id }) => id === chosen}
            />
          </>
        )}
      </Shown>
      <More load={artifacts.more} />
    </Page>
  );
}

function columns(chosen: string | undefined, choose: (id: string) => void, refresh: () => void): Column<Artifact>[] {
  const why = ({ id, path }: Artifact) => (
    <button type="button" aria-label={`Why ${path} is kept`} aria-expanded={id === chosen} onClick={() => choose(id === chosen ? "" : id)}>
      Why
    </button>
  );
  return [
    { title: "Path", cell: ({ path, id }) => <span title={id}>{path}</span> },
    { title: "Job", cell: ({ job, job_name }) => <JobName id={job} name={job_name} />, isMinor: true },
    { title: "Size", cell: ({ size }) => <span title={`${size} bytes`}>{bytes(size)}</span>, isNumber: true },
    { title: "Stored", cell: ({ state }) => <State of={state} /> },
    { title: "Kept by", cell: (artifact) => <Keepers of={artifact} /> },
    { title: "Until", cell: ({ until }) => (until ? <When at={until} /> : <span class="faint">not known yet</span>) },
    {
      title: "Actions",
      cell: (artifact) => (
        <span class="actions">
          {why(artifact)}
          <DownloadArtifact of={artifact} />
          <Pins of={artifact} then={refresh} />
        </span>
      ),
    },
  ];
}

function Keepers({ of: { id, owners } }: { of: Artifact }) {
  if (owners.length === 0) return <span>nothing</span>;
  return (
    <ul class="plain">
      {owners.map((each) => (
        <li key={each}>
          <KeeperName of={each} artifact={id} />
        </li>
      ))}
    </ul>
  );
}
