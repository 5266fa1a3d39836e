/** A job's files: its outputs with previews, its inputs, and the jobs whose outputs it uses. */

import { useState } from "preact/hooks";

import { api, ask, Refused, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { plain } from "../log/ansi";
import { JobName } from "../parts/names";
import { say } from "../parts/notices";
import { Shown } from "../parts/page";
import { More, usePages } from "../parts/pages";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { bytes, When } from "../parts/time";
import { preview, type Preview } from "./preview";

type Job = Schemas["JobView"];
type Output = Schemas["OutputView"];

/** A URL by which an output can be read for an hour, without a token. */
async function signed(job: string, output: string): Promise<string> {
  return (await ask(api.POST("/v1/jobs/{job}/outputs/{output}/sign", { params: { path: { job, output } }, body: { expires_in: 3600 } }))).url;
}

export function Outputs({ job }: { job: Job }) {
  if (!job.outputs_gone) return <KeptOutputs job={job} />;
  return (
    <section class="card" aria-label="Outputs">
      <h2>Outputs</h2>
      <p class="empty">They were deleted.</p>
    </section>
  );
}

function KeptOutputs({ job }: { job: Job }) {
  const [shown, setShown] = useState<{ output: Output; preview: Preview }>();
  const outputs = usePages<Output>(
    `outputs ${job.id} ${job.state}`,
    (page, signal) => api.GET("/v1/jobs/{job}/outputs", { params: { path: { job: job.id }, query: page ? { page } : {} }, ...(signal && { signal }) }),
    { isLast: () => job.state !== "running" }, // while it runs the worker begins to upload; the settled job has them all
  );
  const use = async (output: Output, then: (url: string) => unknown) => {
    try {
      await then(await signed(job.id, output.id));
    } catch (error) {
      const why = error instanceof Refused ? error.detail : "The file store cannot be reached.";
      say(why, "bad");
    }
  };
  const show = (output: Output) => use(output, async (url) => setShown({ output, preview: await preview(output.path, output.size, url) }));
  const columns: Column<Output>[] = [
    { title: "Path", cell: (row) => <span class="mono">{row.path}</span> },
    { title: "Size", cell: (row) => <span title={`${row.size} bytes`}>{bytes(row.size)}</span>, isNumber: true },
    { title: "SHA-256", cell: (row) => <Digest of={row} />, isMinor: true },
    { title: "Uploaded", cell: (row) => <When at={row.time} />, isMinor: true },
    {
      title: "Open",
      cell: (row) => (
        <span class="actions">
          <button type="button" class="quiet" aria-label={`Preview ${row.path}`} onClick={() => void show(row)}>
            Preview
          </button>
          <button type="button" class="quiet" aria-label={`Download ${row.path}`} onClick={() => void use(row, (url) => location.assign(url))}>
            Download
          </button>
        </span>
      ),
    },
  ];
  const empty = job.state === "settled" ? "The job has none." : "None yet: they are uploaded when the script has ended.";
  return (
    <section class="card" aria-label="Outputs">
      <h2>Outputs</h2>
      <Shown of={outputs}>
        {() => <Table caption="Outputs of the job" columns={columns} rows={outputs.rows} id={(row) => row.id} empty={empty} />}
      </Shown>
      <More load={outputs.more} />
      {shown && <Peek {...shown} close={() => setShown(undefined)} />}
    </section>
  );
}

function Digest({ of }: { of: Pick<Output, "sha256" | "composite"> }) {
  const digest = of.sha256 ?? of.composite ?? "";
  return (
    <code title={of.sha256 ? digest : `${digest}, of the digests of its parts`}>
      {digest.slice(0, 12)}
      {digest && "…"}
    </code>
  );
}

function Peek({ output, preview: found, close }: { output: Output; preview: Preview; close: () => void }) {
  return (
    <figure class="peek" aria-label={`Preview of ${output.path}`}>
      <figcaption class="page-top">
        <strong class="mono">{output.path}</strong>
        <button type="button" onClick={close}>
          Close the preview
        </button>
      </figcaption>
      {found.kind === "image" && <img src={found.url} alt={output.path} />}
      {found.kind === "text" && <pre tabIndex={0}>{found.text.split("\n").map(plain).join("\n")}</pre>}
      {found.kind === "text" && found.isCut && <p class="faint">Only the beginning is shown: the file has {bytes(output.size)}.</p>}
      {found.kind === "none" && <p>{found.why}</p>}
    </figure>
  );
}

const INPUTS: Column<Schemas["InputView"]>[] = [
  { title: "Input", cell: (row) => <span class="mono">{row.name}</span> },
  { title: "There", cell: (row) => (row.there ? "✓ uploaded" : "… not yet") },
  { title: "Size", cell: (row) => (row.size === null ? <span class="faint">–</span> : bytes(row.size)), isNumber: true },
  { title: "SHA-256", cell: (row) => <Digest of={row} />, isMinor: true },
  { title: "Due", cell: (row) => (row.there ? <span class="faint">–</span> : <When at={row.until} />) },
];

export function Inputs({ job }: { job: Job }) {
  const inputs = useWatch(
    `inputs ${job.id} ${job.state}`,
    (signal) => api.GET("/v1/jobs/{job}/inputs", { params: { path: { job: job.id } }, signal }),
    { isLast: (found) => found.items.every((each) => each.there) || job.state === "settled" },
  );
  const items = inputs.value?.items ?? [];
  if (items.length === 0 && job.dependencies.length === 0) return null;
  return (
    <section class="card" aria-label="Inputs and dependencies">
      <h2>Inputs and dependencies</h2>
      {items.length > 0 && <Table caption="Inputs" columns={INPUTS} rows={items} id={(row) => row.name} empty="" />}
      {job.dependencies.length > 0 && (
        <Table caption="Dependencies" columns={DEPENDENCIES} rows={job.dependencies} id={(row) => row.name} empty="" />
      )}
    </section>
  );
}

const WHEN: Record<string, string> = { success: "has succeeded", failure: "has failed", always: "has settled" };

const DEPENDENCIES: Column<Schemas["JobDependency"]>[] = [
  { title: "Dependency", cell: (row) => row.name },
  { title: "Job", cell: (row) => <Prior id={row.job} /> },
  { title: "Goes on when it", cell: (row) => WHEN[row.on] ?? row.on },
  { title: "Its outputs", cell: (row) => (row.copy_outputs ? `copied to /input/${row.name}` : "not copied"), isMinor: true },
];

/** A job that this one depends on, with its name and state. One that may not be read is shown by its id. */
function Prior({ id }: { id: string }) {
  const found = useWatch(id, (signal) => api.GET("/v1/jobs/{job}", { params: { path: { job: id } }, signal }), {
    isLast: (job) => job.state === "settled",
  });
  return (
    <span>
      <JobName id={id} name={found.value?.name} /> {found.value && <State of={found.value.state} outcome={found.value.outcome} />}
    </span>
  );
}

const VALUES: Column<Schemas["ValueView"]>[] = [
  { title: "Name", cell: (row) => <span class="mono">{row.name}</span> },
  { title: "Value", cell: (row) => (row.secret ? <span class="faint">secret: only the job may read it</span> : <code>{plain(row.value ?? "")}</code>) },
  { title: "By", cell: (row) => row.source || "the job" },
  { title: "Set", cell: (row) => <When at={row.time} /> },
];

export function Store({ job }: { job: Job }) {
  const values = useWatch(`store ${job.id} ${job.state}`, (signal) => api.GET("/v1/jobs/{job}/store", { params: { path: { job: job.id } }, signal }), {
    isLast: () => job.state === "settled",
  });
  const items = values.value?.items ?? [];
  if (items.length === 0) return null;
  return (
    <section class="card" aria-label="Store">
      <h2>Store</h2>
      <Table caption="Values" columns={VALUES} rows={items} id={(row) => row.name} empty="" />
    </section>
  );
}
