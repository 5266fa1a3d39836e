/** Tests of factories: a job that shows whether a factory works, check by check. */

import { useSearchParams } from "wouter-preact";

import { api, ask, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Action, Field } from "../parts/action";
import { JobName, UnitName } from "../parts/names";
import { Shown } from "../parts/page";
import { RunbookLink } from "../parts/runbook";
import { Table, type Column } from "../parts/table";
import { duration, When } from "../parts/time";

type Check = Schemas["CheckView"];

/** The button that begins a test. Which one runs stands in the address, so that it can be looked at again. */
export function TestFactory({ factory }: { factory: string }) {
  const [, setSearch] = useSearchParams();
  const begin = async (form: FormData) => {
    const minutes = Number(form.get("keep") || 0);
    const body = { target: String(form.get("target") ?? "").trim() || null, keep_on_failure: minutes ? minutes * 60 : null };
    const begun = await ask(api.POST("/v1/factories/{name}/test", { params: { path: { name: factory } }, body }));
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.set("test", `${factory}/${begun.id}`);
      return after;
    });
  };
  return (
    <Action
      title="Test"
      question={`Makes one machine of ${factory}, runs a job on it, and destroys it. It costs what that machine costs.`}
      fields={
        <>
          <Field
            label="Target"
            name="target"
            autocomplete="off"
            hint="By default the first that this factory makes workers for."
          />
          <Field
            label="Minutes to hold the machine"
            name="keep"
            type="number"
            min={1}
            max={10080}
            hint="To look at it if a check fails. It is held from its order on, also if all is well: release it when you are done."
          />
        </>
      }
      run={begin}
      done={`A test of ${factory} has begun`}
    />
  );
}

/** The test that the address names, while it runs and after it. */
export function ShownTest() {
  const [search] = useSearchParams();
  const [factory, job] = (search.get("test") ?? "").split("/");
  return factory && job ? <Progress key={job} factory={factory} job={job} /> : null;
}

const COLUMNS: Column<Check>[] = [
  { title: "State", cell: (each) => <Sign ok={each.ok} /> },
  { title: "Check", cell: (each) => each.check },
  { title: "Found", cell: (each) => each.detail },
  { title: "Took", cell: (each) => (each.seconds === null ? "–" : duration(each.seconds)), isNumber: true },
];

function Progress({ factory, job }: { factory: string; job: string }) {
  const path = { name: factory, job };
  const test = useWatch(
    `test ${job}`,
    (signal) => api.GET("/v1/factories/{name}/tests/{job}", { params: { path }, signal }),
    {
      isLast: (found) => found.over,
    },
  );
  return (
    <section class="card" aria-labelledby="test">
      <div class="page-top">
        <h2 id="test">Test of factory {factory}</h2>
        <RunbookLink of="operations#test-a-factory" title="What each check means" />
      </div>
      <Shown of={test}>
        {(found) => (
          <>
            <p role="status">
              <Verdict of={found} /> Target {found.target}, job <JobName id={found.job} />
              {found.worker && (
                <>
                  , worker <UnitName id={found.worker} />
                </>
              )}
              .{found.waits && ` It waits: ${found.waits}.`}
              {found.held_until && (
                <>
                  {" "}
                  The worker is held; that ends <When at={found.held_until} />.
                </>
              )}
            </p>
            <Table
              caption="Checks"
              columns={COLUMNS}
              rows={found.checks}
              id={(each) => each.check}
              empty="No check is known yet."
            />
          </>
        )}
      </Shown>
    </section>
  );
}

function Verdict({ of: { over, passed } }: { of: Schemas["FactoryTestView"] }) {
  if (!over) return <strong class="live">▶ It runs.</strong>;
  return passed ? <strong class="good">✓ All checks passed.</strong> : <strong class="bad">✕ It failed.</strong>;
}

/** Whether a check holds; a test that is over leaves those unknown that it did not reach. */
function Sign({ ok }: { ok: boolean | null }) {
  const [sign, word, tone] = ok === null ? ["…", "not known", "off"] : ok ? ["✓", "holds", "good"] : ["✕", "fails", "bad"];
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
