/** The job file that a job was submitted with, or its tasks; and which combination of the file's matrix it is. */

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { plain } from "../log/ansi";
import { Copy } from "../parts/action";
import { Shown } from "../parts/page";

type Job = Schemas["JobView"];
type View = Schemas["JobScript"];

export function Script({ job }: { job: Job }) {
  const script = useWatch<View>(`script ${job.id}`, (signal) => api.GET("/v1/jobs/{job}/script", { params: { path: { job: job.id } }, signal }), {
    isLast: () => true,
  });
  return (
    <section class="card" aria-label="Job file">
      <h2>Job file</h2>
      <Shown of={script}>{(found) => <Whole found={found} />}</Shown>
    </section>
  );
}

function Whole({ found }: { found: View }) {
  const matrix = Object.entries(found.matrix);
  return (
    <>
      {matrix.length > 0 && (
        <dl class="facts">
          {matrix.map(([axis, value]) => (
            <Pair key={axis} name={axis} value={value} />
          ))}
        </dl>
      )}
      {found.script !== null && <Text title={found.path || "job file"} text={found.script} />}
      {found.tasks.map((task, index) => (
        <Text key={index} title={`task ${index} “${task.name}”`} text={task.script} />
      ))}
    </>
  );
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <details open={text.length < 4000}>
      <summary>
        <span class="mono">{plain(title)}</span>
      </summary>
      <pre class="script" tabIndex={0}>
        {text.split("\n").map(plain).join("\n")}
      </pre>
      <Copy text={text} title="Copy the script" />
    </details>
  );
}
