/** The users of the service, and repositories, which are users too: `penstock user list`. */

import { Link, useLocation } from "wouter-preact";

import { api, ask, type Schemas } from "../api/client";
import { every } from "../api/every";
import { useWatch } from "../api/watch";
import { Action, Copy, Field } from "../parts/action";
import { Choice, useFilters, Wanted } from "../parts/filters";
import { ForOperators } from "../parts/gate";
import { Page, Shown } from "../parts/page";
import { State } from "../parts/state";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { fits, userPath, words } from "../users";

type User = Schemas["UserView"];

const COLUMNS: Column<User>[] = [
  { title: "State", cell: (user) => <State of={user.state} /> },
  { title: "Name", cell: (user) => <Link href={userPath(user.name)}>{user.name}</Link> },
  { title: "Privileges", cell: (user) => user.privileges.join(", ") || <span class="faint">none</span> },
  { title: "Former names", cell: (user) => user.former.join(", "), isMinor: true },
  { title: "Created", cell: (user) => <When at={user.created} /> },
];

const KINDS = ["people", "repositories", "operators"] as const;

export default function Users() {
  return (
    <ForOperators title="Users">
      <List />
    </ForOperators>
  );
}

function List() {
  const [filters, change] = useFilters();
  const users = useWatch("users", (signal) =>
    every<User>((page) => api.GET("/v1/users", { params: { query: { ...(page && { page }) } }, signal })),
  );
  return (
    <Page title="Users" actions={<Actions />}>
      <div class="filters">
        <Wanted label="Name" value={filters["name"]} onChange={(value) => change("name", value)} />
        <Wanted label="Privilege" value={filters["privilege"]} onChange={(value) => change("privilege", value)} />
        <Choice label="Kind" value={filters["kind"]} options={KINDS} onChange={(value) => change("kind", value)} />
      </div>
      <Shown of={users}>
        {({ rows, isWhole }) => (
          <>
            <Table
              caption="Users"
              columns={COLUMNS}
              rows={rows.filter((each) => fits(each, filters))}
              id={(each) => each.name}
              empty="No user looks like that."
            />
            {!isWhole && <p class="faint">These are the first {rows.length} by name; there are more.</p>}
          </>
        )}
      </Shown>
    </Page>
  );
}

function Actions() {
  const [, go] = useLocation();
  const create = async (form: FormData) => {
    const body = { name: String(form.get("name")).trim(), privileges: words(String(form.get("privileges") ?? "")) };
    const made = await ask(api.POST("/v1/users", { body }));
    go(userPath(made.name));
  };
  return (
    <>
      <Copy text="penstock user list" title="As command" />
      <Action
        title="New user"
        run={create}
        done="The user is created"
        fields={
          <>
            <Field
              label="Name"
              name="name"
              required
              autocomplete="off"
              hint="Lower case. A name with a colon, such as oxide:hubris, is a repository."
            />
            <Field
              label="Privileges"
              name="privileges"
              autocomplete="off"
              hint="Several with spaces between. admin makes an operator."
            />
          </>
        }
      />
    </>
  );
}
