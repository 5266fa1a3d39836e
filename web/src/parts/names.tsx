/** Names of things as links to their pages. An id stands beside a name, or alone where nothing is named. */

import { Link } from "wouter-preact";

interface JobProps {
  id: string | null | undefined;
  name?: string | null | undefined;
  owner?: string | null | undefined;
}

/** A job: its name and owner, with the id for who points at it. */
export function JobName({ id, name, owner }: JobProps) {
  if (!id) return <span class="faint">–</span>;
  return (
    <span>
      <Link href={`/jobs/${id}`} title={id}>
        {name || id}
      </Link>
      {owner && <span class="faint"> {owner}</span>}
    </span>
  );
}

/** A pool, such as target/linux. */
export const PoolName = ({ of }: { of: string }) => <Link href={`/pools/${of}`}>{of}</Link>;

/** A worker or a resource, by its id. */
export function UnitName({ id }: { id: string | null | undefined }) {
  if (!id) return <span class="faint">–</span>;
  const kind = id.startsWith("r-") ? "resources" : "workers";
  return (
    <Link href={`/${kind}/${id}`} class="mono">
      {id}
    </Link>
  );
}
