"""The stacks there are. `cdk synth`, `cdk deploy` and the local cloud all start here."""

import sys
from collections.abc import Mapping

from infra import node

node.use_bundled()

import aws_cdk as cdk  # noqa: E402  (jsii looks for Node when it is imported)

from infra.settings import Settings  # noqa: E402
from infra.stack import Penstock  # noqa: E402
from penstock.console.build import ConsoleError  # noqa: E402


def build(out: str | None = None, context: Mapping[str, str] | None = None) -> cdk.App:
    """The app, with the one stack and the security rules that check it.

    Where it is written and its settings are in the environment, unless they are given.
    """
    from cdk_nag import AwsSolutionsChecks

    app = cdk.App(outdir=out, context=context)
    settings = Settings.of(app.node.get_all_context())
    Penstock(app, settings.name, settings=settings)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    try:
        build().synth()
    except ValueError as error:  # an option that is wrong
        sys.exit(str(error))
    except ConsoleError as error:
        sys.exit(f"{error}; -c console=false deploys without the console")
