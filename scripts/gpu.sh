#!/usr/bin/env bash
# Train from scratch on this GPU and export the network: bash scripts/gpu.sh [MINUTES] [OPTION ...]
# Takes 1.5 minutes more than MINUTES (8), compiling and evaluation included. Options go to train.py and win:
#   bash scripts/gpu.sh 3 --game.rows 4 --game.cols 4 --selfplay.late_start_moves 16 --selfplay.td_above_edges 12
# Results, weights and the load of the GPU are in runs/gpu, or in OUT. A run there is resumed.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} out=${OUT:-runs/gpu} minutes=${1:-8}
shift || true
memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1) || exit 1
preset=gpu_80gb
[ "$memory" -lt 70000 ] && preset=gpu_24gb
[ "$memory" -lt 20000 ] && preset=gpu_8gb
mkdir -p "$out"
( while sleep 5; do nvidia-smi --query-gpu=utilization.gpu,power.draw,memory.used --format=csv,noheader; done ) >>"$out/smi.csv" &
watcher=$!
trap 'kill $watcher' EXIT
start="--config configs/$preset.yaml"
[ -e "$out/run/config.yaml" ] && start=--resume
"$python" scripts/train.py --run_dir "$out/run" $start --minutes "$minutes" "$@" 2>&1 | tee -a "$out/train.log"
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
"$python" scripts/export.py --run_dir "$out/run" --opponents "" --overwrite --out "$out/weights"
