/** What the site is made of: targets, resource types, factories and wells, and how each is. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";

import { api, type Schemas } from "../api/client";
import { useWatch } from "../api/watch";
import { PoolName } from "../parts/names";
import { Shown } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { useSession } from "../session";
import { ShownTest, TestFactory } from "./factory-test";
import { type Entry, settingsOf, text } from "./settings";
import { type Maker, useMakers, useSitePools, useTargets, useTypes } from "./watch";

type Pool = Schemas["PoolView"];

export function Entries() {
  const targets = useTargets();
  const types = useTypes();
  const pools = useSitePools();
  const makers = useMakers();
  const found = pools.value?.items ?? [];
  const { isOperator } = useSession();
  return (
    <>
      <h2>Targets</h2>
      <Shown of={targets}>
        {({ items }) => (
          <Table caption="Targets" columns={targetColumns(found)} rows={items} id={nameOf} empty="The site has no target." />
        )}
      </Shown>
      <h2>Resource types</h2>
      <Shown of={types}>
        {({ items }) => (
          <Table
            caption="Resource types"
            columns={typeColumns(found)}
            rows={items}
            id={nameOf}
            empty="The site has no resource type."
          />
        )}
      </Shown>
      <h2>Factories and wells</h2>
      {isOperator && <ShownTest />}
      <Shown of={makers}>
        {(rows) => (
          <Table
            caption="Factories and wells"
            columns={makerColumns(isOperator)}
            rows={rows}
            id={(each) => each.sort + each.name}
            empty="The site has none."
          />
        )}
      </Shown>
    </>
  );
}

const nameOf = (entry: Entry): string => entry.name;

const members = (settings: Entry["settings"]): readonly unknown[] =>
  Array.isArray(settings["machines"]) ? settings["machines"] : [];

const hasWorkers = (settings: Entry["settings"]): boolean => !settings["redirect"] && !members(settings).length;

const targetColumns = (pools: readonly Pool[]): Column<Entry>[] => [
  {
    title: "Target",
    cell: ({ name, settings }) => (hasWorkers(settings) ? <PoolName of={`target/${name}`} /> : <strong>{name}</strong>),
  },
  {
    title: "Made by",
    cell: ({ settings }) =>
      settings["redirect"]
        ? `is another name of ${text(settings["redirect"])}`
        : members(settings).length
          ? `is one of ${members(settings).join(", ")}`
          : text(settings["factory"]),
  },
  { title: "Now", cell: ({ name }) => <Now pool={pools.find((each) => each.pool === `target/${name}`)} /> },
  {
    title: "Needs",
    cell: ({ settings }) =>
      settings["privilege"] ? <code>{text(settings["privilege"])}</code> : <span class="faint">no privilege</span>,
  },
  { title: "Settings", cell: (entry) => <Settings of={entry} without={["factory", "redirect", "machines", "privilege"]} /> },
];

const typeColumns = (pools: readonly Pool[]): Column<Entry>[] => [
  { title: "Type", cell: ({ name }) => <PoolName of={`resource/${name}`} /> },
  { title: "Made by", cell: ({ settings }) => text(settings["well"]) },
  { title: "Now", cell: ({ name }) => <Now pool={pools.find((each) => each.pool === `resource/${name}`)} /> },
  {
    title: "Needs",
    cell: ({ settings }) =>
      settings["privilege"] ? <code>{text(settings["privilege"])}</code> : <span class="faint">no privilege</span>,
  },
  { title: "Settings", cell: (entry) => <Settings of={entry} without={["well", "privilege"]} /> },
  { title: "Options", cell: ({ name }) => <Options type={name} /> },
];

/** How a pool is: what is held of it, and who waits. */
function Now({ pool }: { pool: Pool | undefined }) {
  if (!pool) return <span class="faint">–</span>;
  return (
    <span>
      {pool.held} of {pool.limit} held, {pool.waiting} waiting{(pool.away ?? 0) > 0 && `, ${pool.away} away`}
      {pool.paused && <strong class="wait"> ‖ paused</strong>}
    </span>
  );
}

/** All settings but those that have a column. */
function Settings({ of, without }: { of: Entry; without: readonly string[] }) {
  const found = settingsOf(of, without);
  if (found.length === 0) return <span class="faint">as usual</span>;
  return (
    <details>
      <summary>show {found.length}</summary>
      <dl class="facts">
        {found.map(([key, value]) => (
          <Setting key={key} name={key} value={value} />
        ))}
      </dl>
    </details>
  );
}

function Setting({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="mono">{value}</dd>
    </>
  );
}

/** What jobs may ask of a resource type; asked for once somebody wants to see it. */
function Options({ type }: { type: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>show</summary>
      {isOpen && <OptionList type={type} />}
    </details>
  );
}

function OptionList({ type }: { type: string }) {
  const found = useWatch(
    `options ${type}`,
    () => api.GET("/v1/resource-types/{name}", { params: { path: { name: type } } }),
    {
      isLast: () => true,
    },
  );
  return (
    <Shown of={found}>
      {({ options }) => {
        if (options === null) return <p class="faint">Its well does not list them.</p>;
        if (options.length === 0) return <p class="faint">None.</p>;
        return (
          <dl class="facts">
            {options.map((each) => (
              <Setting
                key={each.name}
                name={each.name}
                value={[each.kind, each.meaning, each.allowed.length > 0 && `one of ${each.allowed.map(text).join(", ")}`]
                  .filter(Boolean)
                  .join("; ")}
              />
            ))}
          </dl>
        );
      }}
    </Shown>
  );
}

const makerColumns = (isOperator: boolean): Column<Maker>[] => [
  { title: "Name", cell: (maker) => <strong>{`${maker.sort} ${maker.name}`}</strong> },
  { title: "Driver", cell: (maker) => text(maker.settings["driver"]) },
  { title: "State", cell: (maker) => <How of={maker} /> },
  {
    title: "Compared",
    cell: (maker) => (maker.compared?.at ? <When at={maker.compared.at} /> : <span class="faint">not yet</span>),
  },
  {
    title: "Strays, missing",
    cell: (maker) => (maker.compared ? `${maker.compared.strays.length}, ${maker.compared.missing.length}` : "–"),
  },
  { title: "Settings", cell: (maker) => <Settings of={maker} without={["driver"]} /> },
  ...(isOperator
    ? [{ title: "Actions", cell: (maker: Maker) => maker.sort === "factory" && <TestFactory factory={maker.name} /> }]
    : []),
];

/** What is the matter with a factory or well, or that nothing is. */
function How({ of: { cooling, quarantined, compared } }: { of: Maker }) {
  const failures = compared?.failures ?? 0;
  const parts = [
    ...cooling.map((each) => `${each.cause}: ${each.scope || "everything"}`),
    quarantined.length > 0 && `${quarantined.length} in quarantine`,
    failures > 0 && `could not be listed ${failures === 1 ? "once" : `${failures} times`}: ${compared?.why ?? ""}`,
  ].filter(Boolean);
  if (parts.length === 0) return <span class="good">✓ nothing is the matter</span>;
  return (
    <span>
      <span class="bad">! {parts.join("; ")}</span> <Link href="/operator#misconfigured">more</Link>
    </span>
  );
}
