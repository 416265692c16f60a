#!/usr/bin/env bash
# Set up the Python environment; sourced by quickstart.sh and run_tests.sh.
#   source tools/install.sh             makes or reuses .venv and activates it
#   source tools/install.sh --no-venv   installs into the current environment
# The second run costs seconds: a stamp remembers what was installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    local name
    for name in python3.11 python3.12 python3; do
        if command -v "$name" > /dev/null &&
            "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2> /dev/null; then
            echo "$name"
            return
        fi
    done
    echo 'install.sh: needs Python 3.11 or 3.12 on the PATH (tested: 3.11)' >&2
    return 1
}

if [ "${1:-}" != --no-venv ]; then
    if [ ! -x .venv/bin/python ]; then
        PYTHON=$(find_python)
        echo "== Making .venv with $($PYTHON --version)"
        "$PYTHON" -m venv .venv
    fi
    source .venv/bin/activate
fi

STAMP="$(python -c 'import sys; print(sys.prefix)')/.sapiens2_mm_installed"
WANTED="$(pwd) $(cat requirements/*.txt setup.cfg pyproject.toml | sha256sum)"
if [ "$(cat "$STAMP" 2> /dev/null || true)" != "$WANTED" ]; then
    if ! command -v cc > /dev/null && ! command -v gcc > /dev/null; then
        echo 'install.sh: xtcocotools is compiled for numpy 2 and needs a C compiler;' \
            'install one, for example: apt-get install gcc' >&2
        exit 1
    fi
    PIP=(python -m pip install --disable-pip-version-check --progress-bar on)
    echo '== 1/4 build tools' && "${PIP[@]}" -q -r requirements/build.txt
    echo '== 2/4 torch (several GB on the first run)' && "${PIP[@]}" -r requirements/torch.txt
    echo '== 3/4 OpenMMLab hosts, test and rendering packages' &&
        "${PIP[@]}" --no-build-isolation -c requirements/constraints.txt -c requirements/torch.txt \
            -r requirements/hosts.txt -r requirements/pretrain.txt \
            -r requirements/synth.txt -r requirements/video.txt -r requirements/test.txt
    echo '== 4/4 sapiens2_mm' && "${PIP[@]}" -q --no-build-isolation --no-deps -e .
    python -m pip check
    echo "$WANTED" > "$STAMP"
fi
