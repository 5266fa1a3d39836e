/** What an operator watches: all in one request, and what goes soon in another, which changes seldom. */

import { api, type Schemas } from "../api/client";
import { useWatch, type Watched } from "../api/watch";

export type Attention = Schemas["AttentionView"];
export type Unit = Schemas["NeedyUnit"];
export type CoolDown = Schemas["MakerCoolDown"];
export type AlarmsAndLetters = Schemas["AlarmsView"];
export type Alarm = Schemas["AlarmView"];
export type DeadLetterQueue = Schemas["DeadLetterView"];

/** Until when a hold counts as about to end, as for the alarm ForgottenHold. */
export const HOUR = 3_600_000;

/** It is asked for each half minute: what exists outside is compared again and again, which would look like news. */
const SECONDS = 30;

export const useAttention = (): Watched<Attention> =>
  useWatch("attention", (signal) => api.GET("/v1/attention", { signal }), { every: SECONDS });

/** Each minute: most alarms look at five minutes or more, and each answer takes some calls of AWS. */
export const useAlarms = (): Watched<AlarmsAndLetters> =>
  useWatch("alarms", (signal) => api.GET("/v1/alarms", { signal }), { every: 2 * SECONDS });

/** Asked for seldom: the sweep deletes once in a while, and to foresee it takes many reads. */
export const useGoing = (within: number): Watched<Schemas["ForeseenView"]> =>
  useWatch(`going ${within}`, (signal) => api.GET("/v1/artifacts-to-go", { params: { query: { within } }, signal }), {
    every: 10 * SECONDS,
  });
