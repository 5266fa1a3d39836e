/** One's own sessions and tokens: `penstock token list`, and the way to make and revoke them. */

import { Copy } from "../parts/action";
import { ForUsers } from "../parts/gate";
import { Page } from "../parts/page";
import { NewToken, TokenList, useTokens } from "../parts/token-list";
import { When } from "../parts/time";
import { useSession } from "../session";

const TITLE = "Your tokens";

export default function Tokens() {
  return (
    <ForUsers title={TITLE}>
      <Own />
    </ForUsers>
  );
}

function Own() {
  const { who } = useSession();
  const name = who?.name ?? "";
  const tokens = useTokens(name);
  return (
    <Page
      title={TITLE}
      actions={
        <>
          <Copy text="penstock token list" title="As command" />
          <NewToken user={name} then={tokens.refresh} />
        </>
      }
    >
      <dl class="facts">
        <dt>You are</dt>
        <dd>{name}</dd>
        <dt>You may</dt>
        <dd>{who?.privileges.join(", ") || "what needs no privilege"}</dd>
        <dt>Signed in</dt>
        <dd>
          for {who?.token.scopes.join(", ")};{" "}
          {who?.token.expires ? (
            <>
              ends <When at={who.token.expires} />
            </>
          ) : (
            "does not end"
          )}
        </dd>
      </dl>
      <p class="faint">
        A token comes from the one that makes it: it never outlives that one, and is refused with it once that is revoked.
      </p>
      <TokenList of={tokens} />
    </Page>
  );
}
