/** The places of a graph's nodes, worked out by a worker, again when the graph has another shape. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { shapeOf, type GraphData, type Placed } from "./model";

/** Where everything is: undefined until that is known. While a changed graph is placed, the places of the one before. */
export function useLayout(graph: GraphData): { placed: Placed | undefined; isBusy: boolean } {
  const shape = useMemo(() => shapeOf(graph), [graph]);
  const key = useMemo(() => JSON.stringify(shape), [shape]);
  const worker = useRef<Worker>();
  const [found, setFound] = useState<{ key: string; placed: Placed }>();

  useEffect(() => () => worker.current?.terminate(), []);
  useEffect(() => {
    worker.current?.terminate(); // what it works at is of a graph that is gone
    worker.current = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.current.addEventListener("message", ({ data }: MessageEvent<Placed>) => setFound({ key, placed: data }));
    worker.current.postMessage(shape);
  }, [key]);
  return { placed: found?.placed, isBusy: found?.key !== key };
}
