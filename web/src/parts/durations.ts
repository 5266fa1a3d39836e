/** Durations and times as one types them: 90s, 1h30m, 2d; 2026-01-31; today. Pure. */

const SHAPE = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const UNITS = [86400, 3600, 60, 1];

/** Seconds of a duration such as 90s, 1h30m or 7d, or of a number of seconds, as the service reads it; else undefined. */
export function seconds(text: string): number | undefined {
  const typed = text.trim();
  if (/^\d+$/.test(typed)) return Number(typed);
  const counts = typed ? SHAPE.exec(typed)?.slice(1) : undefined;
  return counts?.reduce((sum, count, index) => sum + Number(count ?? 0) * (UNITS[index] ?? 0), 0);
}

/** A moment as RFC 3339: `today`, how long ago (2d), or a date or time; undefined for other text. */
export function moment(text: string, now: number): string | undefined {
  const typed = text.trim();
  if (typed === "today") return new Date(new Date(now).setHours(0, 0, 0, 0)).toISOString();
  const ago = seconds(typed);
  if (ago !== undefined) return new Date(Math.max(0, now - ago * 1000)).toISOString();
  const at = /^\d{4}-\d\d-\d\d/.test(typed) ? new Date(typed) : undefined;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
}
