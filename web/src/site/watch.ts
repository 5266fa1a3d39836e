/** What the page of the site watches. A configuration is applied seldom, so its parts are asked for seldom. */

import { api, type Answer, type Schemas } from "../api/client";
import { useWatch, type Watched } from "../api/watch";

export type Maker = Schemas["MakerView"] & { sort: "factory" | "well" };

const MINUTE = 60;

/** Where a request for each of many things is behind an answer: they are asked once, and then seldom. */
const SELDOM = 10 * MINUTE;

export const useSitePools = (): Watched<Schemas["PoolPage"]> =>
  useWatch("site pools", (signal) => api.GET("/v1/pools", { signal }), { every: MINUTE });

export const useTargets = (): Watched<Schemas["EntryPage"]> =>
  useWatch("targets", (signal) => api.GET("/v1/targets", { signal }), { every: 5 * MINUTE });

export const useTypes = (): Watched<Schemas["EntryPage"]> =>
  useWatch("resource types", (signal) => api.GET("/v1/resource-types", { signal }), { every: 5 * MINUTE });

/** All factories and wells, and how each is. */
export function useMakers(): Watched<Maker[]> {
  return useWatch(
    "makers",
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
        : { data: answers.flatMap(({ data }) => (data ? [data] : [])), response: new Response() };
    },
    { every: SELDOM },
  );
}

const as = (sort: Maker["sort"], { data, error, response }: Answer<Schemas["MakerView"]>): Answer<Maker> =>
  data ? { data: { ...data, sort }, response } : { error, response };
