"""Prints docs/operators/metrics.md, from the table of metrics: `python -m infra.metricspage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

from penstock.aws.cloudwatch import EmfMetrics
from penstock.domain.metrics import METRICS, NAMESPACE, Dimension, Fold, Level, Metric, how_many
from penstock.domain.site import parse
from penstock.domain.site.site import Site

PRICE = 0.30
"""US dollars a month for a metric, of the first 10,000. Source: aws.amazon.com/cloudwatch/pricing, us-east-1, 2026."""

SWEEPS = 60 * 24 * 30
"""A month."""

FOLDS = {Fold.SUM: "sum", Fold.MOST: "maximum", Fold.EACH: "each"}

HEAD = f"""# Metrics

<!-- made by `PYTHONPATH=functions .venv/bin/python -m infra.metricspage`; a test compares it with the code -->

Penstock publishes metrics to CloudWatch, in the namespace `{NAMESPACE}`. Each has the dimension `service`: the name
of the deployment. The functions write metrics into their logs (embedded metric format), so they need no permission
and make no call for it. What to do when an alarm on one of them is raised: [operations](operations.md#alarms).

You choose how much is published when you deploy:

| `penstock deploy` with | publishes |
|---|---|
| `-c metrics=site` (the default) | metrics of the site as a whole |
| `-c metrics=pools` | the same, and also by pool, target, factory and well |
| `-c metrics=off` | nothing; alarms that need these metrics are left out |

Dimensions are names from your site file and fixed words, never ids, because CloudWatch charges for each combination.

- **Counters are never too high.** A value is published after the commit that it counts. A function that dies in
  between publishes nothing, so a counter can be too low. The exact state is in the table, and the `penstock` command
  shows it.
- **Zeros are published.** Each minute the sweep publishes a zero for every combination that the site has, so you can
  tell "nothing happened" from "no data". Metrics that keep each value (durations and `BootFailures`) have no zeros.
- Metrics of units are published every three minutes, when the sweep compares units with what exists.
- There is no metric for the price of machines.
- Two more metrics are published at every level. `UnknownDriverErrors`, with the dimension `driver`, counts error
  codes of a provider that the driver does not know. `ColdStart`, with the dimensions `function_name` and `service`,
  counts cold starts of functions.

The column *values* says what is kept of the values that one function call publishes: their sum, the maximum, or each
value. *By* has the dimensions at `site`, with their values; *finer* has the dimensions that are added with `pools`. A
**maker** is a factory or a well, such as `factory/aws`.

| metric | unit | values | by | finer | meaning |
|---|---|---|---|---|---|
"""

COST = f"""
## Cost

CloudWatch charges ${PRICE:.2f} a month for each metric, as long as it is published. This is the price in us-east-1
for the first 10,000 metrics. The first ten of an account are free; the table does not subtract them. The number of
metrics grows with the site only at `pools`.

| site | `off` | `site` | `pools` | log at `site` | log at `pools` |
|---|---|---|---|---|---|
"""

TAIL = """
The log columns have how much the sweep's zeros add to the log each month; $0.50 per GB. In addition there are $0.10 a
month for each alarm (the first ten are free), $3 for the dashboard (the first three with up to 50 metrics are free),
and $1 for the key that encrypts the topic of the alarms. To count the alarms, run `make synth` and then `grep -c
AWS::CloudWatch::Alarm build/cdk.out/Penstock.template.json`. Prices are from aws.amazon.com/cloudwatch/pricing and
aws.amazon.com/kms/pricing.

## Add a metric

Declare it in `functions/penstock/domain/metrics.py`, and call `on.metrics.add(…)` after the commit that it counts.
Then make this page again. Tests fail if nothing publishes the metric, if a call uses dimensions that it does not
have, or if this page is out of date.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"{_line(metric)}\n" for metric in METRICS) + COST + "\n".join(_costs()) + "\n" + TAIL


def _line(metric: Metric) -> str:
    names = "only `pools`" if metric.site is None else ", ".join(_values(metric, each) for each in metric.site) or "-"
    finer = "-" if metric.pools is None else ", ".join(each.name for each in metric.pools)
    unit = metric.measure.value.lower()
    return f"| `{metric.name}` | {unit} | {FOLDS[metric.fold]} | {names} | {finer} | {metric.meaning} |"


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
    """The size of the sweep's zeros in a month of the log. Other values add little to it."""
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
    found = parse.parse("\n".join(lines), "site.toml")
    if not isinstance(found, Site):
        raise ValueError(found)
    return found


if __name__ == "__main__":
    print(page(), end="")
