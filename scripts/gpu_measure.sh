#!/usr/bin/env bash
# Measure the speed of gpu_80gb.yaml on this GPU: bash scripts/gpu_measure.sh [OPTION ...]. Takes 3.5 minutes.
# OLD, the folder of another version, is measured in turns with this one. Results are in runs/measure, or in OUT.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} out=$(realpath -m "${OUT:-runs/measure}")
mkdir -p "$out"
preset="--config configs/gpu_80gb.yaml"  # with its late starts
for turn in 1 2; do
  for tree in . ${OLD:-}; do
    name=$([ "$tree" = . ] && echo new || echo old)
    ( cd "$tree" && "$python" scripts/benchmark.py $preset "$@" --seconds 20 --rounds 1 --json "$out/$name$turn.json" )
  done
done
# The second start compiles nothing: seconds to the end of its first iteration.
for start in first second; do
  rm -rf "$out/start"
  began=$(date +%s.%N)
  "$python" scripts/train.py $preset --minutes 0 --iterations 1 --evaluation.suite none --evaluation.opponents "" \
    --run_dir "$out/start" "$@" >/dev/null
  echo "$start start: $(echo "$(date +%s.%N) - $began" | bc) s"
done | tee "$out/starts.txt"
# The kernels that take most of one iteration.
"$python" scripts/benchmark.py $preset "$@" --seconds 1 --rounds 1 --trace "$out/trace" >"$out/trace.txt"
"$python" - "$out/trace" <<'TABLE' | tee "$out/kernels.txt"
import collections, gzip, json, pathlib, sys
events = json.load(gzip.open(next(pathlib.Path(sys.argv[1]).rglob("perfetto_trace.json.gz"))))["traceEvents"]
gpus = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
times = collections.Counter()
for event in events:
    if event.get("ph") == "X" and event["pid"] in gpus:
        times[event.get("args", {}).get("hlo_op", event["name"]).split(".")[0]] += event["dur"] / 1e3
for name, milliseconds in times.most_common(25):
    print(f"{milliseconds:10.1f} ms {milliseconds / times.total():6.1%}  {name}")
TABLE
