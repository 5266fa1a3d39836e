/** Workers and resources, which the service shows alike: what is asked for, and what of a unit is where. */

import { api, type Answer, type Schemas } from "../../api/client";

/** A kind of units, as in addresses. */
export type Kind = "workers" | "resources";

/** A worker or a resource, with its target or type and its factory or well under one name. */
export interface Unit extends Omit<Schemas["WorkerView"], "target" | "factory"> {
  kind: Kind;
  /** The target or the resource type. */
  type: string;
  /** The factory or the well. */
  maker: string;
}

export interface UnitPage {
  items: Unit[];
  next: string | null;
}

/** What a kind and its parts are called. */
export const WORDS = {
  workers: { title: "Workers", one: "worker", type: "Target", maker: "Factory", pools: "target" },
  resources: { title: "Resources", one: "resource", type: "Type", maker: "Well", pools: "resource" },
} as const;

/** The pool that a unit has a slot of. */
export const poolOf = ({ kind, type }: Unit): string => `${WORDS[kind].pools}/${type}`;

const ofWorker = ({ target, factory, ...rest }: Schemas["WorkerView"]): Unit => ({
  ...rest,
  kind: "workers",
  type: target,
  maker: factory,
});

const ofResource = ({ well, ...rest }: Schemas["ResourceView"]): Unit => ({ ...rest, kind: "resources", maker: well });

/** What of a unit is news: with each heartbeat it is due later. */
export const newsOf = ({ due, next_step, ...rest }: Unit): unknown => rest;

/** The same answer with another value. */
async function as<T, U>(request: Promise<Answer<T>>, change: (value: T) => U): Promise<Answer<U>> {
  const { data, ...rest } = await request;
  return data === undefined ? rest : { ...rest, data: change(data) };
}

/** A page of a kind's units; the first for an empty `page`. */
export function listUnits(kind: Kind, page: string, signal?: AbortSignal): Promise<Answer<UnitPage>> {
  const query = { params: { query: page ? { page } : {} }, ...(signal && { signal }) };
  if (kind === "workers")
    return as(api.GET("/v1/workers", query), ({ items, next }) => ({ items: items.map(ofWorker), next }));
  return as(api.GET("/v1/resources", query), ({ items, next }) => ({ items: items.map(ofResource), next }));
}

export function getUnit(kind: Kind, id: string, signal: AbortSignal): Promise<Answer<Unit>> {
  if (kind === "workers")
    return as(api.GET("/v1/workers/{worker}", { params: { path: { worker: id } }, signal }), ofWorker);
  return as(api.GET("/v1/resources/{resource}", { params: { path: { resource: id } }, signal }), ofResource);
}

/** The entries of a unit's log after a number. */
export function getEvents(
  kind: Kind,
  id: string,
  after: number,
  signal: AbortSignal,
): Promise<Answer<Schemas["UnitEventPage"]>> {
  const query = { after, limit: 1000 };
  if (kind === "workers")
    return api.GET("/v1/workers/{worker}/events", { params: { path: { worker: id }, query }, signal });
  return api.GET("/v1/resources/{resource}/events", { params: { path: { resource: id }, query }, signal });
}

/** The factory or well of a unit: how it is. */
export function getMaker({ kind, maker }: Unit, signal: AbortSignal): Promise<Answer<Schemas["MakerView"]>> {
  const params = { path: { name: maker } };
  return kind === "workers"
    ? api.GET("/v1/factories/{name}", { params, signal })
    : api.GET("/v1/wells/{name}", { params, signal });
}
