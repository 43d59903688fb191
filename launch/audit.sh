#!/usr/bin/env bash
# Audits the running system with Horovod workers:  launch/audit.sh noise|step|one-run …
#
#   launch/audit.sh noise                                  is the released noise what is claimed?
#   launch/audit.sh step --set privacy.variant=published   the paper's accounting, refuted
#   NP=2 launch/audit.sh one-run configs/audit/one_run.yaml
#
# NP is the number of workers (default 8). The exit code is 0 if the claim stands, 1 if it is refuted
# or a worker died (then no verdict is printed), 2 if what was given cannot be.
. "$(dirname "${BASH_SOURCE[0]}")/workers.sh" audit "$@"
