/** Lines over time, drawn by uPlot. Whoever shows one puts its numbers beside it, for who does not see it. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "../style/chart.css";

/** A line: its colour is one of tokens.css; dashes tell it from the others without the colour. */
export interface Line {
  title: string;
  colour: "live" | "good" | "wait" | "bad" | "off";
  dash?: number[];
  isFilled?: boolean;
}

/** Moments in seconds, and for each line its values; null where there is none. */
export type Points = [number[], ...(number | null)[][]];

interface Props {
  label: string;
  lines: readonly Line[];
  points: Points;
  /** The times at both ends, in seconds. */
  range: [number, number];
  /** The point under the pointer; undefined when it leaves. */
  onPoint?: (index: number | undefined) => void;
}

const HEIGHT = 220;

/** A chart whose values stand until the next point. It is drawn anew when the colours or the width change. */
export function Chart({ label, lines, points, range, onPoint }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [width, colours] = [useWidth(place), useColours()];
  const latest = useRef(onPoint);
  latest.current = onPoint;
  useEffect(() => {
    if (!place.current || width === 0) return undefined;
    const chart = new uPlot(optionsOf(lines, range, width, (index) => latest.current?.(index)), points, place.current);
    return () => chart.destroy();
  }, [lines, points, range[0], range[1], width, colours]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}

function optionsOf(
  lines: readonly Line[],
  [min, max]: [number, number],
  width: number,
  point: (index: number | undefined) => void,
): uPlot.Options {
  const axis = { stroke: colourOf("faint"), grid: { stroke: colourOf("line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { min, max }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.08] } },
    axes: [{ ...axis, values: (_, moments, __, ___, step) => moments.map((at) => moment(at, step)) }, { ...axis, incrs: [0.25, 0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000] }],
    series: [{}, ...lines.map(seriesOf)],
    hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? undefined)] },
  };
}

/** A moment under the chart: its time, or its day where the moments are days or where a day begins. */
function moment(at: number, step: number | undefined): string {
  const time = new Date(at * 1000);
  const isDay = (step ?? 0) >= 86400 || (time.getHours() === 0 && time.getMinutes() === 0);
  return isDay ? DAY.format(time) : TIME.format(time);
}

const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function seriesOf({ title, colour, dash, isFilled }: Line): uPlot.Series {
  const stroke = colourOf(colour);
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  return {
    label: title,
    stroke,
    width: 2,
    points: { show: false },
    ...(stepped && { paths: stepped }),
    ...(dash && { dash }),
    ...(isFilled && { fill: stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.18)") }),
  };
}

/** A colour of tokens.css as the page has it now: a canvas knows no variables. */
function colourOf(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A number that changes when the page's colours do. */
function useColours(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const change = () => setCount((before) => before + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const chosen = new MutationObserver(change);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    system.addEventListener("change", change);
    return () => {
      chosen.disconnect();
      system.removeEventListener("change", change);
    };
  }, []);
  return count;
}

/** How wide an element is, in whole pixels; 0 until that is known. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const sized = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    if (element.current) sized.observe(element.current);
    return () => sized.disconnect();
  }, []);
  return width;
}
