/** Runbooks: what the documentation says to do, shown beside what it is about. They come with the console. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation, useSearchParams } from "wouter-preact";

import { type Block, partsOf, type Section, sections, type Span } from "../markdown";
import { Loading } from "./page";
import "../style/runbook.css";

/** The pages of the documentation that have runbooks, each loaded when it is first looked at. */
const PAGES: Record<string, { file: string; load: () => Promise<{ default: string }> }> = {
  capacity: { file: "docs/operators/capacity.md", load: () => import("../../../docs/operators/capacity.md?raw") },
  github: { file: "docs/users/github.md", load: () => import("../../../docs/users/github.md?raw") },
  operations: { file: "docs/operators/operations.md", load: () => import("../../../docs/operators/operations.md?raw") },
  retention: { file: "docs/users/retention.md", load: () => import("../../../docs/users/retention.md?raw") },
  site: { file: "docs/operators/site.md", load: () => import("../../../docs/operators/site.md?raw") },
};

/** A link to a runbook, such as `operations#quarantined`, for pages that have `Runbook`. It stands in the address, so it can be sent. */
export function RunbookLink({ of, title = "Runbook", what }: { of: string; title?: string; what?: string }) {
  const [path] = useLocation();
  const [search] = useSearchParams();
  const after = new URLSearchParams(search);
  after.set("runbook", of);
  return (
    <Link href={`${path}?${after}`} class="runbook-link" aria-label={what && `Runbook: ${what}`}>
      {title}
    </Link>
  );
}

/** The runbook that the address asks for, in a dialog. */
export function Runbook() {
  const [search, setSearch] = useSearchParams();
  const of = search.get("runbook");
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (of) dialog.current?.showModal();
    else dialog.current?.close();
  }, [of]);
  const leave = () => {
    if (!of) return;
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.delete("runbook");
      return after;
    });
  };
  return (
    <dialog ref={dialog} class="runbook" aria-label="Runbook" onClose={leave}>
      {of && <Text key={of} of={of} />}
      <div class="actions">
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

/** The parts of a section of the documentation; undefined until they are loaded, none if there is no such section. */
export function useDocs(page: string, slug: string): Section[] | undefined {
  const [found, setFound] = useState<Section[]>();
  useEffect(() => {
    const known = PAGES[page];
    if (known) void known.load().then((text) => setFound(partsOf(sections(text.default), slug)));
    else setFound([]);
  }, [page, slug]);
  return found;
}

function Text({ of }: { of: string }) {
  const [page = "", slug = ""] = of.split("#");
  const found = useDocs(page, slug);
  if (!found) return <Loading />;
  if (found.length === 0) return <p>The documentation has no such section.</p>;
  return (
    <>
      {found.map((section, index) => (
        <section key={section.slug}>
          {index === 0 ? <h2>{section.title}</h2> : <h3>{section.title}</h3>}
          {section.blocks.map((block, place) => (
            <Part key={place} block={block} page={page} />
          ))}
        </section>
      ))}
      <p class="faint">
        From <code>{PAGES[page]?.file}</code>
      </p>
    </>
  );
}

function Part({ block, page }: { block: Block; page: string }) {
  const line = (spans: Span[]) => spans.map((each, index) => <Words key={index} span={each} page={page} />);
  switch (block.is) {
    case "text":
      return <p>{line(block.spans)}</p>;
    case "code":
      return <pre tabIndex={0}>{block.text}</pre>;
    case "list":
      return <List of={block} line={line} />;
    case "table":
      return <Rows rows={block.rows} line={line} />;
  }
}

type Line = (spans: Span[]) => ComponentChildren;

function List({ of: { items, isOrdered }, line }: { of: Extract<Block, { is: "list" }>; line: Line }) {
  const found = items.map((item, index) => <li key={index}>{line(item)}</li>);
  return isOrdered ? <ol>{found}</ol> : <ul>{found}</ul>;
}

function Rows({ rows: [head = [], ...rows], line }: { rows: Span[][][]; line: Line }) {
  return (
    <div class="scrolls" role="region" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {line(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, index) => (
                <td key={index} data-title={head[index]?.map((each) => each.text).join("")}>
                  {line(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A link leads to another section that is here, or is only words: the documentation has no address of its own. */
function Words({ span, page }: { span: Span; page: string }) {
  if (span.is === "code") return <code>{span.text}</code>;
  if (span.is === "strong") return <strong>{span.text}</strong>;
  if (span.is !== "link") return <>{span.text}</>;
  const [file = "", slug] = span.to.split("#");
  const name = file === "" ? page : file.replace(/^.*\//, "").replace(/\.md$/, "");
  return slug && PAGES[name] ? <RunbookLink of={`${name}#${slug}`} title={span.text} /> : <>{span.text}</>;
}
