#!/usr/bin/env bash
# Set up .venv if needed, lint, and run the tests.
#   bash tools/run_tests.sh [pytest arguments]
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
ruff check .
ruff format --check .
python -m pytest "$@"
