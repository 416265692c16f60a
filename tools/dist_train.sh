#!/usr/bin/env bash
# Train with several processes, one per GPU, on one machine or on several.
#   bash tools/dist_train.sh CONFIG PROCESSES [arguments of tools/train.py]
# With several machines start it on each, with the name of one of them:
#   NNODES=4 MASTER_ADDR=node0 bash tools/dist_train.sh CONFIG 8
# PORT (29400) must be free there. If a process dies, torchrun stops the others on all
# machines; start it again with --resume.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,7s/^# //p' "$0" >&2
    exit 2
fi
CONFIG=$1 PROCESSES=$2
shift 2
if [ "${NNODES:-1}" = 1 ]; then
    GROUP=(--standalone)
else
    : "${MASTER_ADDR:?is to name one of the machines}"
    ENDPOINT="$MASTER_ADDR:${PORT:-29400}"
    GROUP=(--nnodes "$NNODES" --rdzv-backend c10d --rdzv-endpoint "$ENDPOINT")
    GROUP+=(--rdzv-id "${RUN_ID:-sapiens2_mm}")
fi
# What torchrun passes on to its processes, which save and end; it waits 30 s for them.
export PET_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1
exec python -m torch.distributed.run "${GROUP[@]}" --nproc-per-node "$PROCESSES" \
    "$(dirname "$0")/train.py" "$CONFIG" --launcher pytorch "$@"
