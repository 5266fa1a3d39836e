/** Why an artifact is kept, until when, and what would end that. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Copy } from "../parts/action";
import { command } from "../parts/command";
import { Download, SIGN } from "../parts/download";
import { JobName } from "../parts/names";
import { Shown } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { bytes, When } from "../parts/time";
import { keeperOf } from "./keepers";
import { Pins } from "./pin";

type Keeper = Schemas["KeeperView"];

const columns = (artifact: string): Column<Keeper>[] => [
  { title: "Kept by", cell: ({ owner }) => <KeeperName of={owner} artifact={artifact} /> },
  { title: "Why", cell: ({ why }) => why },
  { title: "Until", cell: ({ until }) => (until ? <When at={until} /> : "not known yet") },
  { title: "What would end that", cell: ({ frees }) => frees },
];

/** What keeps an artifact, as a link if it has a page. */
export function KeeperName({ of, artifact }: { of: string; artifact: string }) {
  const { text, to } = keeperOf(of, artifact);
  return to ? <Link href={to}>{text}</Link> : <span>{text}</span>;
}

interface Props {
  artifact: string;
  close: () => void;
  /** The list is asked again after a change. */
  then: () => void;
}

export function WhyCard({ artifact, close, then }: Props) {
  const found = useWatch(`artifact ${artifact}`, (signal) =>
    api.GET("/v1/artifacts/{artifact}/why", { params: { path: { artifact } }, signal }),
  );
  const changed = () => {
    found.refresh();
    then();
  };
  return (
    <section class="card" aria-label="Why it is kept">
      <Shown of={found}>{(why) => <Why of={why} changed={changed} />}</Shown>
      <div class="actions">
        <button type="button" onClick={close}>
          Close
        </button>
        <Copy text={command("penstock", "artifact", "why", artifact)} title="Copy as command" />
      </div>
    </section>
  );
}

function Why({ of: { artifact, summary, keepers }, changed }: { of: Schemas["ArtifactWhy"]; changed: () => void }) {
  return (
    <>
      <h2 class="wrap">{artifact.path}</h2>
      <p>{summary}</p>
      <dl class="facts">
        <dt>Id</dt>
        <dd class="mono">{artifact.id}</dd>
        <dt>Job</dt>
        <dd>
          <JobName id={artifact.job} name={artifact.job_name} />
        </dd>
        <dt>Belongs to</dt>
        <dd>{artifact.by}</dd>
        <dt>Size</dt>
        <dd>
          {bytes(artifact.size)} ({artifact.size} bytes)
        </dd>
        <dt>{artifact.sha256 ? "SHA-256" : "Digest of the parts"}</dt>
        <dd class="mono">{artifact.sha256 ?? artifact.composite ?? "not known yet"}</dd>
      </dl>
      <Table caption="What keeps it" columns={columns(artifact.id)} rows={keepers} id={({ owner }) => owner} empty="Nothing keeps it." />
      <div class="actions">
        <DownloadArtifact of={artifact} />
        <Pins of={artifact} then={changed} />
      </div>
    </>
  );
}

/** A button to fetch an artifact whose bytes are there. */
export function DownloadArtifact({ of }: { of: Schemas["ArtifactView"] }) {
  if (of.state !== "created") return null;
  const sign = () => api.POST("/v1/artifacts/{artifact}/sign", { params: { path: { artifact: of.id } }, body: SIGN });
  return <Download name={of.path} sign={sign} />;
}
