#!/usr/bin/env bash
# Makes the environment of benchmarks/peers.py: PyTorch, Opacus and transformers, apart from .venv.
#
#   benchmarks/setup_peers.sh [DIR]     (default: .venv-peers in the project's root)
#
# Pip takes PyTorch's CPU build (2.13.0+cpu counts as 2.13.0, and before it) wherever an index or a
# folder of wheels that it was told of has one, else the default build, with 3 GB of CUDA libraries.
# PYTHON=/path/to/python chooses the interpreter (3.10 or later).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$(realpath -m "${1:-$root/.venv-peers}")
packages=("torch==2.13.0" "opacus==1.6.0" "transformers==5.23.0" "numpy>=1.26,<3")

if [ "$venv" = "$(realpath -m "${EDP_MX_VENV:-$root/.venv}")" ]; then
  echo "setup_peers: $venv is the project's own environment; name another folder" >&2; exit 2
fi
for python in ${PYTHON:-python3.11 python3.12 python3.10 python3}; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet "${packages[@]}"
    exec "$venv/bin/python" -c 'import torch, opacus, transformers as t
print(f"torch {torch.__version__}, opacus {opacus.__version__}, transformers {t.__version__}")'
  fi
done
echo "setup_peers: no Python from 3.10 was found; set PYTHON=/path/to/python" >&2
exit 2
