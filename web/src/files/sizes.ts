/** How much the files that are loaded take, by some name. Pure. */

export interface Share {
  name: string;
  files: number;
  bytes: number;
}

export interface Sizes {
  files: number;
  bytes: number;
  /** The largest first. A file of several names counts for each. */
  shares: Share[];
}

export function sizesOf<File extends { size: number }>(files: readonly File[], namesOf: (file: File) => readonly string[]): Sizes {
  const shares = new Map<string, Share>();
  for (const file of files)
    for (const name of new Set(namesOf(file))) {
      const share = shares.get(name) ?? { name, files: 0, bytes: 0 };
      share.files += 1;
      share.bytes += file.size;
      shares.set(name, share);
    }
  return {
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    shares: [...shares.values()].sort((one, other) => other.bytes - one.bytes),
  };
}
