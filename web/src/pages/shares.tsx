/** Who used how much of what many want, and what is their part by weight: `penstock share list`. */

import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { Copy } from "../parts/action";
import { ForUsers } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { duration } from "../parts/time";
import { useSession } from "../session";
import { percent, scaleOf, standing } from "../shares";
import "../style/shares.css";

type Share = Schemas["ShareView"];

const columns = (rows: Share[]): Column<Share>[] => [
  { title: "Owner", cell: (share) => <Link href={`/?owner=${encodeURIComponent(share.owner)}&all=true`}>{share.owner}</Link> },
  { title: "Weight", cell: (share) => share.weight, isNumber: true },
  { title: "Part by weight", cell: (share) => percent(share.entitled), isNumber: true },
  { title: "Used lately", cell: (share) => percent(share.used), isNumber: true },
  { title: "Used beside its part", cell: (share) => <Bar of={share} most={scaleOf(rows)} /> },
  { title: "Stands", cell: (share) => <Stands of={share} /> },
  {
    title: "Slot time",
    cell: (share) => <span title={`${share.used_seconds} s of one slot`}>{duration(share.used_seconds)}</span>,
    isNumber: true,
  },
];

export default function Shares() {
  const shares = useWatch("shares", (signal) => api.GET("/v1/shares", { signal }));
  return (
    <ForUsers title="Shares">
      <Page title="Shares" actions={<Copy text="penstock share list" title="As command" />}>
        <Shown of={shares}>
          {(page) => (page.half_life === null ? <None /> : <List rows={page.items} halfLife={page.half_life} />)}
        </Shown>
      </Page>
    </ForUsers>
  );
}

function None() {
  return (
    <p class="empty">
      This site has no <code>[shares]</code>: of jobs of one priority, the oldest is served first.
    </p>
  );
}

function List({ rows, halfLife }: { rows: Share[]; halfLife: number }) {
  const { isOperator } = useSession();
  return (
    <>
      <p class="faint">
        Whoever is above their part waits behind those below theirs, among jobs of one priority. A use counts half after{" "}
        {duration(halfLife)}; what waits counts as expected.
        {!isOperator && " You see yourself and the repositories that you submit for."}
      </p>
      <Table
        caption="Shares"
        columns={columns(rows)}
        rows={rows}
        id={(share) => share.owner}
        empty="Nobody used anything lately."
      />
    </>
  );
}

/** What was used as a bar, and a line where the part by weight ends. */
function Bar({ of: { used, entitled }, most }: { of: Share; most: number }) {
  return (
    <div class="bar" role="img" aria-label={`${percent(used)} used, ${percent(entitled)} by weight`}>
      <div class={used > entitled ? "over" : ""} style={{ width: `${(used / most) * 100}%` }} />
      <i style={{ left: `${(entitled / most) * 100}%` }} />
    </div>
  );
}

function Stands({ of }: { of: Share }) {
  const [sign, word, tone] = standing(of);
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
