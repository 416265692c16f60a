#!/usr/bin/env bash
# From nothing to pictures: set up, render a few synthetic people, train a tiny model
# on them, test it, and draw its predictions. 8 to 14 minutes on two CPU cores.
#   bash tools/quickstart.sh [--task pose|seg|normal|pointmap|albedo] [--no-venv]
# A second run reuses the environment, the data and the trained model.
set -euo pipefail
TASK=pose
NO_VENV=
while [ $# -gt 0 ]; do
    case "$1" in
        --task) TASK=${2:?--task needs a value} && shift ;;
        --no-venv) NO_VENV=--no-venv ;;
        *)
            echo "quickstart.sh: unknown option $1; known: --task TASK, --no-venv" >&2
            exit 2
            ;;
    esac
    shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
CONFIG=$(find configs -path "configs/$TASK/sapiens2-tiny_*_synthetic-humans-*.py" | sort | head -n 1)
case "$TASK" in
    pose | seg | normal | pointmap | albedo) ;;
    *)
        echo "quickstart.sh: unknown task $TASK;" \
            'known: pose, seg, normal, pointmap, albedo' >&2
        exit 2
        ;;
esac
source tools/install.sh $NO_VENV

# The tiny configs fit this many people; the keypoints of new ones need more of them.
if [ "$TASK" = pose ]; then
    NUM_TRAIN=128 DATA=data/synthetic_humans_256x192_128
else
    NUM_TRAIN=32 DATA=data/synthetic_humans_256x192
fi
OUT=work_dirs/quickstart/$TASK

echo "== Synthetic people: $DATA"
python -m projects.synthetic_humans "$DATA" --num-train $NUM_TRAIN --num-val 8 --size 256x192 \
    --seed 0 --workers "$(nproc)"

if [ -f "$OUT/finished" ]; then
    echo "== Trained model: reusing $(cat "$OUT/finished")"
else
    echo "== Training $CONFIG"
    python tools/train.py "$CONFIG" --work-dir "$OUT" --resume
    echo "$OUT/$(cat "$OUT/last_checkpoint")" > "$OUT/finished"
fi
CHECKPOINT=$(cat "$OUT/finished")

for SPLIT in train val; do
    echo "== Testing on the $SPLIT images"
    python tools/test.py "$CONFIG" "$CHECKPOINT" --work-dir "$OUT/test_$SPLIT" \
        --show-dir "$OUT/pictures_$SPLIT" \
        --cfg-options "test_dataloader.dataset.ann_file=annotations/$SPLIT.json"
done

echo
echo "== Done ($TASK)"
for SPLIT in train val; do
    METRICS=$(ls -t "$OUT/test_$SPLIT"/*/*.json | head -n 1)
    echo "$SPLIT images: metrics in $METRICS"
    python -m json.tool "$METRICS"
    echo "  pictures: $OUT/pictures_$SPLIT/test"
done
echo 'The model has seen only a few people: it fits those of train, new ones roughly at best.'
