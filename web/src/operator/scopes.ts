/** Scopes of cool-downs: what a driver calls that of which there is none. Those of our own drivers name a type and a place. */

export interface Place {
  /** What was asked for, such as a type of machine. */
  type: string;
  /** The zone, location or subnet; "" for all. */
  place: string;
  /** What else the scope names, such as a market and a region. */
  of: string;
}

/** The type and the place that a scope names. Of scopes that are not known, all is the type. */
export function placeOf(scope: string): Place {
  const [driver, ...parts] = scope.split("/");
  if (driver === "ec2" && parts.length > 1) return ofEc2(parts);
  if (driver === "libcloud" && parts.length > 2) return ofLibcloud(parts);
  return { type: scope || "everything", place: "", of: "" };
}

/** REGION/MARKET/TYPE/ZONE, REGION/MARKET/TYPE, REGION/MARKET/group/GROUP, REGION/place|subnet/WHERE, REGION/all. */
function ofEc2([region = "", kind = "", ...rest]: string[]): Place {
  if (kind === "all") return { type: "everything", place: "", of: region };
  if (kind === "place" || kind === "subnet") return { type: "every type", place: rest.join("/"), of: region };
  if (rest[0] === "group") return { type: `group ${rest[1] ?? ""}`, place: "", of: `${kind}, ${region}` };
  return { type: rest[0] ?? "", place: rest[1] ?? "", of: `${kind}, ${region}` };
}

/** PROVIDER/DIGEST/SIZE/PLACE, PROVIDER/DIGEST/size/SIZE, PROVIDER/DIGEST/place/PLACE, PROVIDER/DIGEST/all. */
function ofLibcloud([provider = "", , kind = "", name = ""]: string[]): Place {
  if (kind === "all") return { type: "everything", place: "", of: provider };
  if (kind === "place") return { type: "every size", place: name, of: provider };
  return kind === "size" ? { type: name, place: "", of: provider } : { type: kind, place: name, of: provider };
}
