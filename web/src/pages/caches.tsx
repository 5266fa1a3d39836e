/** Entries of caches, which jobs restore: until when they are kept, and how full the owner's caches are. */

import { api, ask, type Schemas } from "../api/client";
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
import { useWatchedPages, type Listed } from "../parts/watch-pages";
import "../style/files.css";

type Entry = Schemas["CacheView"];

/** The first page also says how much the owner has and may have. */
type CachePage = Listed<Entry> & Partial<Pick<Schemas["CachePage"], "bytes" | "quota">>;

export default function Caches() {
  const [filters, change] = useFilters();
  const owner = filters["owner"] ?? "";
  const caches = useWatchedPages<Entry, CachePage>(
    `caches ${owner}`,
    (page, signal) => api.GET("/v1/caches", { params: { query: { ...(owner && { owner }), ...(page && { page }) } }, signal }),
    { isOver: () => false },
  );
  const copied = command("penstock", "cache", "list", ...(owner ? ["--owner", owner] : []));
  return (
    <Page title="Caches" actions={<Copy text={copied} title="Copy as command" />}>
      <FilesNav />
      <div class="filters">
        <Wanted label="Owner" value={owner} onChange={(value) => change("owner", value)} hint="you" />
      </div>
      <Shown of={caches}>
        {({ bytes: used, quota }) => (
          <>
            {used !== undefined && quota !== undefined && <Quota used={used} quota={quota} owner={owner} />}
            <SizesCard of={sizesOf(caches.rows, ({ name }) => [name])} title="By cache" isPart={caches.more !== undefined} />
            <Table
              caption="Entries of caches"
              columns={columns(caches.refresh)}
              rows={caches.rows}
              id={({ id }) => id}
              empty="There is no entry. Jobs make them: [cache.NAME] in a job file, or bmat cache save."
              isMarked={({ id }) => id === filters["cache"]}
            />
          </>
        )}
      </Shown>
      <More load={caches.more} />
    </Page>
  );
}

function Quota({ used, quota, owner }: { used: number; quota: number; owner: string }) {
  const words = `${bytes(used)} of ${bytes(quota)}`;
  return (
    <section class="card" aria-label="Room">
      <p>
        {owner ? `All cache entries of ${owner}` : "All your cache entries"} take <strong>{words}</strong>. When there is no room, those
        that were not used for longest go.
      </p>
      <meter min={0} max={quota} value={used} high={quota * 0.9} aria-label="Room that is taken">
        {words}
      </meter>
    </section>
  );
}

function columns(refresh: () => void): Column<Entry>[] {
  return [
    { title: "Cache", cell: ({ name }) => name },
    { title: "Key", cell: ({ key, id }) => <span title={id}>{key}</span> },
    { title: "Scope", cell: ({ scope }) => scope || "every branch" },
    { title: "Target", cell: ({ target }) => target, isMinor: true },
    { title: "Paths", cell: ({ paths }) => paths, isMinor: true },
    { title: "Size", cell: ({ size }) => <span title={`${size} bytes`}>{bytes(size)}</span>, isNumber: true },
    { title: "Saved by", cell: ({ job, job_name }) => <JobName id={job} name={job_name} />, isMinor: true },
    { title: "Used", cell: ({ used }) => <When at={used} /> },
    { title: "Until", cell: ({ until }) => <When at={until} /> },
    { title: "Actions", cell: (entry) => <Actions of={entry} refresh={refresh} /> },
  ];
}

function Actions({ of, refresh }: { of: Entry; refresh: () => void }) {
  const sign = () => api.POST("/v1/artifacts/{artifact}/sign", { params: { path: { artifact: of.id } }, body: SIGN });
  return (
    <span class="actions">
      <Download name={`the archive of ${of.key}`} sign={sign} />
      <Action
        title="Delete"
        isDangerous
        question={`The entry of ${of.name} with the key ${of.key} is deleted. The next job with its key saves a new one; downloads that run go on.`}
        run={() => ask(api.DELETE("/v1/caches/{cache}", { params: { path: { cache: of.id } } }))}
        done={`The entry of ${of.name} with the key ${of.key} is deleted`}
        then={refresh}
      />
    </span>
  );
}
