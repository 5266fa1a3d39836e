"""Prints docs/operators/metrics.md, from the table of metrics: `python -m infra.metricspage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

from penstock.adapters.metrics import EmfMetrics
from penstock.domain import siteparse
from penstock.domain.metric import Dimension, Fold, Level, Metric
from penstock.domain.metrics import METRICS, NAMESPACE, how_many
from penstock.domain.site import Site

PRICE = 0.30
"""US dollars a month for a metric, of the first 10,000. Source: aws.amazon.com/cloudwatch/pricing, us-east-1, 2026."""

SWEEPS = 60 * 24 * 30
"""A month."""

FOLDS = {Fold.SUM: "sum", Fold.MOST: "maximum", Fold.EACH: "each"}

HEAD = f"""# Metrics

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.metricspage`; a test compares it with the code -->

All are in the namespace `{NAMESPACE}` of CloudWatch and have the dimension `service`, the deployment's name. They are
written into the functions' logs (embedded metric format), so they need no permission and no call. docs/operators/operations.md
has what to do when one of them calls.

`cdk deploy -c metrics=site`, which is the default, tells those of the site as a whole; `-c metrics=pools` tells them by
pool, target, factory and well as well; `-c metrics=off` tells none, and leaves out the alarms that need them.
Dimensions are names of the site's configuration and words of the table, never ids: each combination is charged for.

- **Counters are never doubled**: each is told after the commit that made it so, and who loses a race tells nothing. A
  function that dies between the commit and its end tells nothing of that call either, so one may be lost. The truth is
  in the rows, and `penstock` tells it.
- **Zeros are told**: the sweep tells a zero of every combination that the site knows, each minute, so that "nothing
  happened" is not "no data". Durations and `BootFailures` (those that are kept "each") have none: what was not, took
  no time.
- Units are read, and told, when the sweep compares them with what exists: every three minutes.
- No driver says yet what a machine costs an hour, so there is no price among them.
- `ColdStart`, by `function_name` and `service`, is Powertools' own.

| metric | unit | of one call | by | with `pools` also by | is |
|---|---|---|---|---|---|
"""

COST = f"""
## What they cost

${PRICE:.2f} a month for each of the first 10,000, while it is told (aws.amazon.com/cloudwatch/pricing, us-east-1); the
first ten of an account are free, which is left out here. Only with `pools` a larger site has more of them.

| site | `off` | `site` | `pools` | log with `site` | with `pools` |
|---|---|---|---|---|---|
"""

TAIL = """
Besides: $0.10 a month for each alarm (the first ten are free), $3 for the dashboard (the first three are free, of up to
50 metrics), $1 for the key that the alarms' topic is encrypted with, and $0.50 for each GB of log; the table has what
the sweep's zeros take of it in a month. Sources: aws.amazon.com/cloudwatch/pricing and aws.amazon.com/kms/pricing.
`grep -c AWS::CloudWatch::Alarm build/cdk.out/Penstock.template.json` after `make synth` counts the alarms.

## To add one

A line in `functions/penstock/domain/metrics.py`, and `on.metrics.add(…)` where it happens, after the commit. Tests fail
for one that nobody tells, for dimensions that it does not have, and until this page is made anew.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"{_line(metric)}\n" for metric in METRICS) + COST + "\n".join(_costs()) + "\n" + TAIL


def _line(metric: Metric) -> str:
    told = "-" if metric.site is None else ", ".join(_values(metric, each) for each in metric.site) or "nothing"
    finer = "-" if metric.pools is None else ", ".join(each.name for each in metric.pools)
    unit = metric.measure.value.lower()
    return f"| `{metric.name}` | {unit} | {FOLDS[metric.fold]} | {told} | {finer} | {metric.meaning} |"


def _values(metric: Metric, dimension: Dimension) -> str:
    values = dict.fromkeys(by[dimension.name] for by in metric.combinations(Site(), Level.SITE))
    return f"{dimension.name} ({', '.join(values)})"


def _costs() -> Iterator[str]:
    for targets in (1, 10, 100):
        site = _site(targets)
        dollars = [f"{count} (${PRICE * count:.2f})" for count in (how_many(site, level) for level in Level)]
        logs = [f"{_gigabytes(site, level):.1f} GB" for level in (Level.SITE, Level.POOLS)]
        name = f"a factory, a well, {targets} targets, {targets} resource types"
        yield f"| {' | '.join([name, *dollars, *logs])} |"


def _gigabytes(site: Site, level: Level) -> float:
    """What the sweep's zeros take of the log in a month; what is told besides is little beside them."""
    metrics, written = EmfMetrics(level, "Penstock"), StringIO()
    for metric in METRICS:
        if metric.fold is not Fold.EACH:
            for by in metric.combinations(site, level):
                metrics.add(metric, 0, **by)
    with redirect_stdout(written):
        metrics.flush_metrics()
    return len(written.getvalue()) * SWEEPS / 1e9


def _site(targets: int) -> Site:
    lines = ['[factories.here]\ndriver = "process"', '[wells.locks]\ndriver = "lock"']
    for number in range(targets):
        lines.append(f'[targets.t{number}]\nfactory = "here"\nlimit = 1')
        lines.append(f'[resources.r{number}]\nwell = "locks"\nlimit = 1')
    found = siteparse.parse("\n".join(lines), "site.toml")
    if not isinstance(found, Site):
        raise ValueError(found)
    return found


if __name__ == "__main__":
    print(page(), end="")
