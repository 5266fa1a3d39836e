/** The address that `penstock console` prints: whatever page it is opened on, the page that signs in gets its code. */

const CODE = "#sign-in=";

const hasCode = (): boolean => location.hash.startsWith(CODE);

const PAGE = "/sign-in";

/**
 * Leads to the page that signs in, if the address has a code. In a tab in which the console is open already the page is
 * loaded anew: it reads its address once. The one that is shown must not use the code before, since it ends then.
 */
export function arrive(): void {
  if (hasCode()) history.replaceState(null, "", PAGE + location.hash);
  addEventListener("hashchange", () => {
    if (!hasCode()) return;
    if (location.pathname === PAGE) location.reload();
    else location.replace(PAGE + location.hash);
  });
}
