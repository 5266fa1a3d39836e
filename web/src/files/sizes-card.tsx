/** How much the files that are loaded take: said as such, as there may be more. */

import { bytes } from "../parts/time";
import type { Sizes } from "./sizes";

interface Props {
  of: Sizes;
  /** What the shares are of, for example "By what keeps them". */
  title: string;
  /** Whether there are files that are not loaded. */
  isPart: boolean;
  /** Whether a file may count for several shares. */
  isShared?: boolean;
}

const FEW = 8;

export function SizesCard({ of, title, isPart, isShared }: Props) {
  if (of.files === 0) return null;
  const largest = of.shares[0]?.bytes ?? 0;
  return (
    <section class="card" aria-label="Sizes">
      <p>
        <strong>{bytes(of.bytes)}</strong> in {of.files === 1 ? "the file" : `the ${of.files} files`} listed here
        {isPart ? "; there are more that are not loaded." : "."}
      </p>
      <table class="sizes">
        <caption>
          {title}
          {isShared && <span class="faint"> (a file that several keep counts for each)</span>}
        </caption>
        <tbody>
          {of.shares.slice(0, FEW).map((share) => (
            <tr key={share.name}>
              <th scope="row">{share.name}</th>
              <td class="bar-cell">
                <span class="bar" aria-hidden="true" style={{ width: `${largest ? (100 * share.bytes) / largest : 0}%` }} />
              </td>
              <td class="number">{bytes(share.bytes)}</td>
              <td class="number faint">{share.files === 1 ? "1 file" : `${share.files} files`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.shares.length > FEW && <p class="faint">And {of.shares.length - FEW} smaller ones.</p>}
    </section>
  );
}
