/** What keeps an artifact, by the names that the service gives it, such as `job#ID` or `pin#USER`. Pure. */

export interface Keeper {
  /** job, pin, cache or published. */
  kind: string;
  /** What stands behind the sign: a job's id, a user, a cache's place, or OWNER/SERIES/VERSION/NAME. */
  id: string;
  /** Its words. */
  text: string;
  /** Its page; undefined if it has none. */
  to: string | undefined;
}

/** What a name of the service stands for. `artifact` is what is kept: a cache entry has its id. */
export function keeperOf(name: string, artifact = ""): Keeper {
  const [, kind = "", id = ""] = /^([a-z]+)[#/](.*)$/.exec(name) ?? ["", "", name];
  switch (kind) {
    case "job":
      return { kind, id, text: `job ${id}`, to: `/jobs/${id}` };
    case "pin":
      return { kind, id, text: `pin of ${id}`, to: undefined };
    case "cache":
      return { kind, id, text: "cache entry", to: `/caches?${addressed({ owner: id.split("/")[0], cache: artifact })}` };
    case "published":
      return { kind, id, text: `published as ${id}`, to: `/published?${addressed(partsOf(id))}` };
    default:
      return { kind, id, text: name, to: undefined };
  }
}

function partsOf(file: string): Record<string, string | undefined> {
  const [owner, series, version] = file.split("/");
  return { owner, series, version };
}

const addressed = (parts: Record<string, string | undefined>): string =>
  new URLSearchParams(Object.entries(parts).map(([name, value]): [string, string] => [name, value ?? ""])).toString();
