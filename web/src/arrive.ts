/** The address that `penstock console` prints: whatever page it is opened on, the page that signs in gets its code. */

const CODE = "#sign-in=";

const hasCode = (): boolean => location.hash.startsWith(CODE);

/** Leads to the page that signs in, if the address has a code; also in a tab in which the console is open already. */
export function arrive(): void {
  lead();
  addEventListener("hashchange", () => {
    if (!hasCode()) return;
    lead();
    location.reload(); // a page that is shown reads its address once
  });
}

function lead(): void {
  if (hasCode()) history.replaceState(null, "", `/sign-in${location.hash}`);
}
