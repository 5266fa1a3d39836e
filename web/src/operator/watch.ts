/** What an operator watches, each part by itself, so that what does not change is asked for ever less often. */

import { api, type Answer, type Schemas } from "../api/client";
import { every } from "../api/every";
import { useWatch, type Watched } from "../api/watch";

export type Unit = (Schemas["WorkerView"] | Schemas["ResourceView"]) & { kind: "worker" | "resource"; maker: string };
export type Maker = Schemas["MakerView"] & { sort: "factory" | "well" };
export type CoolDown = Schemas["CoolDownView"];

/** How long a unit may wait to be destroyed, and until when a hold counts as about to end, as for the alarms. */
export const HOUR = 3_600_000;

const MINUTE = 60;

/** The workers and resources that something is the matter with. Of others, only the number is kept. */
export function useUnits(): Watched<{ units: Unit[]; count: number }> {
  return useWatch("operator units", async (signal) => {
    const [workers, resources] = await Promise.all([
      every((page) => api.GET("/v1/workers", { params: { query: { ...(page && { page }) } }, signal })),
      every((page) => api.GET("/v1/resources", { params: { query: { ...(page && { page }) } }, signal })),
    ]);
    if (!workers.data) return { error: workers.error, response: workers.response };
    if (!resources.data) return { error: resources.error, response: resources.response };
    const units: Unit[] = [
      ...workers.data.rows.map((row) => ({ ...row, kind: "worker" as const, maker: row.factory })),
      ...resources.data.rows.map((row) => ({ ...row, kind: "resource" as const, maker: row.well })),
    ];
    return made({ units: units.filter(isWatched), count: units.length });
  });
}

const isWatched = (unit: Unit): boolean => !!(unit.quarantine || unit.hold || unit.broken || unit.state === "dirty");

/** All factories and wells, and how each is. */
export function useMakers(): Watched<Maker[]> {
  return useWatch(
    "operator makers",
    async (signal) => {
      const [factories, wells] = await Promise.all([api.GET("/v1/factories", { signal }), api.GET("/v1/wells", { signal })]);
      if (!factories.data) return factories;
      if (!wells.data) return wells;
      const path = (name: string) => ({ params: { path: { name } }, signal });
      const asked = [
        ...factories.data.items.map(async ({ name }) => as("factory", await api.GET("/v1/factories/{name}", path(name)))),
        ...wells.data.items.map(async ({ name }) => as("well", await api.GET("/v1/wells/{name}", path(name)))),
      ];
      const answers = await Promise.all(asked);
      const refused = answers.find((each) => each.data === undefined);
      return refused
        ? { error: refused.error, response: refused.response }
        : made(answers.flatMap(({ data }) => (data ? [data] : [])));
    },
    { slowest: MINUTE },
  );
}

/** A maker, without what changes with each answer though nothing happened. */
function as(sort: Maker["sort"], { data, error, response }: Answer<Schemas["MakerView"]>): Answer<Maker> {
  if (!data) return { error, response };
  const compared = data.compared && { ...data.compared, seconds_ago: null };
  return { data: { ...data, compared, sort }, response };
}

/** An answer that was made of several. */
const made = <T>(data: T): Answer<T> => ({ data, response: new Response() });

export const usePools = (): Watched<Schemas["PoolPage"]> =>
  useWatch("operator pools", (signal) => api.GET("/v1/pools", { signal }));

export const useCanaries = (): Watched<Schemas["CanaryPage"]> =>
  useWatch("canaries", (signal) => api.GET("/v1/canaries", { signal }), { slowest: MINUTE });

export const useDeliveries = (): Watched<Schemas["DeliveryPage"]> =>
  useWatch("deliveries", (signal) => api.GET("/v1/github/deliveries", { params: { query: { limit: 100 } }, signal }), {
    slowest: MINUTE,
  });

export const useGoing = (within: number): Watched<Schemas["ForeseenView"]> =>
  useWatch(`going ${within}`, (signal) => api.GET("/v1/artifacts-to-go", { params: { query: { within } }, signal }), {
    slowest: 2 * MINUTE,
  });

/** What was changed by hand since the configuration was applied: a check of the configuration that is in force says it. */
export function useDrift(): Watched<Schemas["SiteChanges"]> {
  return useWatch(
    "drift",
    async (signal): Promise<Answer<Schemas["SiteChanges"]>> => {
      const site = await api.GET("/v1/config", { signal });
      if (!site.data) return { error: site.error, response: site.response };
      if (site.data.toml === null) return made({ ...NO_CHANGES });
      const body = { toml: site.data.toml, path: "site.toml" };
      return api.PUT("/v1/config", { params: { query: { check: true } }, body, signal });
    },
    { slowest: 2 * MINUTE },
  );
}

const NO_CHANGES: Schemas["SiteChanges"] = {
  changes: [],
  warnings: [],
  differences: [],
  losses: [],
  drift: [],
  base: null,
  applied_at: null,
  applied_by: null,
};
