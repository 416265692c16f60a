#!/usr/bin/env bash
# Set up .venv if needed, lint, and run the tests.
#   bash tools/run_tests.sh [pytest arguments]
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
ruff check .
ruff format --check .
# Two workers of one thread each; another `-n` overrides, `-n 0` runs without workers.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
python -m pytest -n 2 --dist loadfile "$@"
