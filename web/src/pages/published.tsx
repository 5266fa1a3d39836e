/** Published files: outputs with a permanent name, and who may read them. */

import { api, ask, type Schemas } from "../api/client";
import { AccessRules } from "../files/access";
import { FilesNav } from "../files/nav";
import { sizesOf } from "../files/sizes";
import { SizesCard } from "../files/sizes-card";
import { Action, Copy } from "../parts/action";
import { command } from "../parts/command";
import { Download, SIGN } from "../parts/download";
import { useFilters, Wanted } from "../parts/filters";
import { JobName } from "../parts/names";
import { Page, Shown } from "../parts/page";
import { More } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { bytes, When } from "../parts/time";
import { useWatchedPages } from "../parts/watch-pages";
import { useSession } from "../session";
import "../style/files.css";

type File = Schemas["PublishedView"];

const FILTERS = ["owner", "series", "version"] as const;

export default function Published() {
  const { who } = useSession();
  const [filters, change] = useFilters();
  const query = Object.fromEntries(FILTERS.flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])));
  const files = useWatchedPages<File>(
    `published ${JSON.stringify(query)}`,
    (page, signal) => api.GET("/v1/published", { params: { query: { ...query, ...(page && { page }) } }, signal }),
    { isOver: () => false }, // any file may be withdrawn
  );
  const owner = filters["owner"] || who?.name;
  const options = Object.entries(query).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return (
    <Page title="Published" actions={<Copy text={command("penstock", "published", "list", ...options)} title="Copy as command" />}>
      <FilesNav />
      <div class="filters">
        <Wanted label="Owner" value={filters["owner"]} onChange={(value) => change("owner", value)} hint="you" />
        <Wanted label="Series" value={filters["series"]} onChange={(value) => change("series", value)} hint="nightly" />
        <Wanted label="Version" value={filters["version"]} onChange={(value) => change("version", value)} />
      </div>
      <Shown of={files}>
        {() => (
          <>
            <SizesCard of={sizesOf(files.rows, ({ series }) => [series])} title="By series" isPart={files.more !== undefined} />
            <Table
              caption="Published files"
              columns={columns(files.refresh)}
              rows={files.rows}
              id={nameOf}
              empty="Nothing is published: penstock job publish, or [[publish]] in a job file."
            />
          </>
        )}
      </Shown>
      <More load={files.more} />
      {owner && <AccessRules key={owner} owner={owner} />}
    </Page>
  );
}

/** What a file is called, as commands take it. */
const nameOf = ({ owner, series, version, name }: File): string => [owner, series, version, name].join("/");

function columns(refresh: () => void): Column<File>[] {
  return [
    { title: "File", cell: (file) => <span class="wrap">{nameOf(file)}</span> },
    { title: "Size", cell: ({ size }) => <span title={`${size} bytes`}>{bytes(size)}</span>, isNumber: true },
    { title: "Digest", cell: (file) => <Digest of={file} />, isMinor: true },
    { title: "Made by", cell: ({ job, path }) => <span title={path}><JobName id={job} /></span>, isMinor: true },
    { title: "Published", cell: ({ time, by }) => <><When at={time} /> by {by}</> },
    { title: "Kept", cell: (file) => <Kept of={file} /> },
    { title: "Actions", cell: (file) => <Actions of={file} refresh={refresh} /> },
  ];
}

function Digest({ of }: { of: File }) {
  const digest = of.sha256 ?? of.composite;
  if (!digest) return <span class="faint">–</span>;
  return (
    <span class="mono" title={`${of.sha256 ? "SHA-256" : "of the parts"}: ${digest}`}>
      {digest.slice(0, 12)}
    </span>
  );
}

function Kept({ of: { withdrawn, withdrawn_by } }: { of: File }) {
  if (!withdrawn) return <>until it is withdrawn</>;
  return (
    <>
      withdrawn <When at={withdrawn} /> by {withdrawn_by}
    </>
  );
}

function Actions({ of, refresh }: { of: File; refresh: () => void }) {
  const path = { owner: of.owner, series: of.series, version: of.version, name: of.name };
  if (of.withdrawn) return null;
  return (
    <span class="actions">
      <Download name={nameOf(of)} sign={() => api.POST("/v1/published/{owner}/{series}/{version}/{name}/sign", { params: { path }, body: SIGN })} />
      <Copy text={new URL(of.url, location.origin).href} title="Copy address" />
      <Action
        title="Withdraw"
        isDangerous
        question={`${nameOf(of)} is withdrawn: nobody can read it by this name. Its bytes go unless something else keeps them, and no other content can take the name.`}
        run={() => ask(api.DELETE("/v1/published/{owner}/{series}/{version}/{name}", { params: { path } }))}
        done={`${nameOf(of)} is withdrawn`}
        then={refresh}
      />
    </span>
  );
}
