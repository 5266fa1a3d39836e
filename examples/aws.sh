#!/bin/bash
#:
#: name = "aws"
#: variety = "basic"
#: resources = ["aws"]
#: timeout = "3h"
#:
# Uses AWS credentials that end with this job. The site needs a resource type `aws`: docs/operators/wells/sts.md.

set -o errexit
set -o nounset
set -o pipefail

# With this, AWS's command line and libraries fetch the credentials by themselves, and again before they end.
bmat resource get aws --format aws-config > "$HOME/aws-config"
export AWS_CONFIG_FILE="$HOME/aws-config"

aws sts get-caller-identity
