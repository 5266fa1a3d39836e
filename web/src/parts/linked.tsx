/** Sentences of the service in which the ids of jobs, workers and resources are links. */

import { Link } from "wouter-preact";

const ID = /(\b[wr]-[0-9A-HJKMNP-TV-Z]{26}\b|(?<![\w-])(?:job )?[0-9A-HJKMNP-TV-Z]{26}\b)/;

/** A sentence. `names` are names of jobs by their ids, which stand there instead of the ids. */
export function Linked({ text, names }: { text: string; names?: ReadonlyMap<string, string> }) {
  return <>{text.split(ID).map((part, index) => (index % 2 ? <One key={index} text={part} names={names} /> : part))}</>;
}

function One({ text, names }: { text: string; names: ReadonlyMap<string, string> | undefined }) {
  if (/^[wr]-/.test(text)) {
    return <Link href={`/${text.startsWith("r-") ? "resources" : "workers"}/${text}`}>{text}</Link>;
  }
  const id = text.replace(/^job /, "");
  return (
    <>
      {text.startsWith("job ") ? "job " : ""}
      <Link href={`/jobs/${id}`} title={id}>
        {names?.get(id) ?? id}
      </Link>
    </>
  );
}
