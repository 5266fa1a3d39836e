/** What of a file can be shown without running it: text, or an image. */

export type Preview = { kind: "text"; text: string; isCut: boolean } | { kind: "image"; url: string } | { kind: "none"; why: string };

const MOST_TEXT = 64 * 1024;
const MOST_IMAGE = 4 * 1024 ** 2;
/** An image is shown by an `img`, where nothing of an SVG runs. */
const IMAGES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  svg: "image/svg+xml",
};

const imageType = (path: string): string | undefined => IMAGES[path.slice(path.lastIndexOf(".") + 1).toLowerCase()];

/** Read the beginning of a file, or an image. */
export async function preview(path: string, size: number, url: string): Promise<Preview> {
  const type = imageType(path);
  if (type && size > MOST_IMAGE) return { kind: "none", why: "The image is too large to be shown here. Download it." };
  if (size === 0) return { kind: "text", text: "", isCut: false };
  const most = type ? size : Math.min(size, MOST_TEXT);
  const answer = await fetch(url, { headers: { range: `bytes=0-${most - 1}` }, credentials: "omit", referrerPolicy: "no-referrer" });
  if (!answer.ok) return { kind: "none", why: `The store answered ${answer.status}.` };
  const content = await atMost(answer, most);
  return type ? { kind: "image", url: await dataUrl(content, type) } : text(content, size);
}

/** The first bytes of an answer, also of a store that does not heed the range. */
async function atMost(answer: Response, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const found = new Uint8Array(most);
  let filled = 0;
  const reader = answer.body?.getReader();
  while (reader && filled < most) {
    const { value, done } = await reader.read();
    if (done) break;
    const part = value.subarray(0, most - filled);
    found.set(part, filled);
    filled += part.length;
  }
  await reader?.cancel();
  return found.subarray(0, filled);
}

function text(content: Uint8Array, size: number): Preview {
  if (content.includes(0)) return { kind: "none", why: "It is no text. Download it." };
  return { kind: "text", text: new TextDecoder().decode(content), isCut: content.length < size };
}

function dataUrl(content: Uint8Array<ArrayBuffer>, type: string): Promise<string> {
  return new Promise((found, failed) => {
    const reader = new FileReader();
    reader.onload = () => found(String(reader.result));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(new Blob([content], { type }));
  });
}
