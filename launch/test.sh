#!/usr/bin/env bash
# Sets everything up and runs the tests:  launch/test.sh [pytest arguments]
#
#   launch/test.sh                           the default suite
#   launch/test.sh -m slow                   the long ones
#   launch/test.sh tests/unit/dp/accounting  one room
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"
ruff check edp_mx experiments tests launch benchmarks setup.py
ruff format --check --quiet edp_mx experiments tests launch benchmarks setup.py
mypy
export OMP_NUM_THREADS=1  # the files side by side share the cores
# Files side by side: two cores, one set of fixtures per file. In the order of their names, which has
# the trainings and the launches first; by itself xdist takes the files with the fewest tests last.
exec python -m pytest -n 2 --dist loadfile --no-loadscope-reorder "$@"
