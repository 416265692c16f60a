#!/usr/bin/env bash
# What only a GPU can show, in at most 6 minutes: equality with the fixtures, flash
# attention, speed and MFU of training and inference, FSDP2, peak memory.
#   bash tools/benchmark/gpu_check.sh [--dry-run]     # --dry-run: tiny, on the CPU
set -u
cd "$(dirname "$0")/../.."
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
python=${PYTHON:-python}
failed=()
slow=1
[ "${1:-}" = --dry-run ] && slow=10  # CPUs are

check() {  # SECONDS NAME COMMAND...
    local limit=$1 name=$2 start=$SECONDS
    shift 2
    echo "== $name"
    timeout "$((limit * slow))" "$@" || failed+=("$name")
    echo "   $((SECONDS - start)) s"
}

declare -A limits=([fixtures]=40 [attention]=30 [steps]=160 [pretraining]=40)
limits+=([decoding]=30 [fsdp2]=60)  # seconds
for part in fixtures attention steps pretraining decoding fsdp2; do
    check "${limits[$part]}" "$part" "$python" tools/benchmark/gpu_check.py "$part" "$@"
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
echo 'all parts passed'
