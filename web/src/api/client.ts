/** Requests to the service, with types of its OpenAPI document: a difference between the two is a type error. */

import createClient from "openapi-fetch";

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** The service takes the session's cookie only with this header, which pages of other origins cannot send. [SEC-2] */
const HEADERS = { "penstock-console": "1" };

export const api = createClient<paths>({ baseUrl: "", headers: HEADERS, credentials: "same-origin" });

const signedOut = new Set<() => void>();

/** Calls `listener` whenever the service no longer knows the session. Gives a way to stop that. */
export function whenSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

api.use({
  onResponse: ({ response, schemaPath }) => {
    if (response.status === 401 && schemaPath !== "/v1/session") signedOut.forEach((each) => each());
  },
});

/** What the service refused, or that it could not be reached (status 0). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    /** What is wrong in detail, for example with each line of a configuration. */
    readonly faults: Schemas["FaultView"][] = [],
  ) {
    super(detail);
  }

  /** Whether nobody is signed in, or no longer. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }
}

/** What a request gives: the answer, or what was wrong. */
export interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer to a request. Throws Refused. */
export async function ask<T>(request: Promise<Answer<T>>): Promise<T> {
  return (await reply(request)).data as T;
}

/** The answer to a request, and its headers. Throws Refused. */
export async function reply<T>(request: Promise<Answer<T>>): Promise<Answer<T>> {
  const answer = await request.catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused(0, "unreachable", "The service cannot be reached. Is this machine online?");
  });
  if (!answer.response.ok) throw refused(answer);
  return answer;
}

function refused({ error, response }: Answer<unknown>): Refused {
  const problem = (typeof error === "object" && error !== null ? error : {}) as Partial<Schemas["ProblemView"]>;
  const detail = problem.detail ?? `The service answered ${response.status}.`;
  return new Refused(response.status, problem.code ?? "unknown", detail, problem.errors);
}
