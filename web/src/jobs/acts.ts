/** What one does with jobs. */

import { api, type Answer, type Schemas } from "../api/client";

export const cancelJob = (job: string): Promise<Answer<Schemas["JobView"]>> =>
  api.POST("/v1/jobs/{job}/cancel", { params: { path: { job } } });

export const retryJob = (job: string): Promise<Answer<Schemas["Created"]>> =>
  api.POST("/v1/jobs/{job}/retry", { params: { path: { job } } });

export const counted = (count: number): string => (count === 1 ? "1 job" : `${count} jobs`);
