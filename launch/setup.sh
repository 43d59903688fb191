#!/usr/bin/env bash
# Creates .venv and installs everything in stages; run again, it continues where it stopped.
#
#   launch/setup.sh          CPU (the default)
#   launch/setup.sh --gpu    mxnet-cu112 and Horovod with NCCL (CUDA 11, nvcc and a GPU needed)
#
# PYTHON=/path/to/python chooses the interpreter, EDP_MX_VENV=DIR replaces .venv.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

is_usable() { "$1" -c 'import sys; sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 11))' 2>/dev/null; }

for python in ${PYTHON:-python3 python3.11 python3.10 python3.9 python3.8}; do
  if is_usable "$python"; then
    exec "$python" "$root/launch/bootstrap.py" "$@"
  fi
done
echo "setup: MXNet 1.9.1 needs Python 3.8 to 3.11 and none was found (looked for:" \
  "${PYTHON:-python3 python3.11 python3.10 python3.9 python3.8}). Install one, e.g." \
  "'apt-get install python3.11 python3.11-venv python3.11-dev', or set PYTHON=/path/to/python." >&2
exit 2
