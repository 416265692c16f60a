#!/usr/bin/env bash
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@300
# Train under Slurm, one process per GPU; submit it from the root of the repository.
#   sbatch --nodes=4 --ntasks-per-node=8 --gpus-per-node=8 tools/slurm_train.sh CONFIG \
#       [arguments of tools/train.py]
# Five minutes before the time limit the run saves, ends with code 138 and is queued
# again, to go on from there. When it is pre-empted it saves and Slurm itself requeues it.
# One process that dies ends the job with an error.
set -uo pipefail
trap : TERM USR1  # wait for the processes, which get them too
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
srun --kill-on-bad-exit=1 python tools/train.py "$1" --launcher slurm --resume "${@:2}"
CODE=$?
if [ "$CODE" = 138 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$CODE"
