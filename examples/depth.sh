#!/usr/bin/env bash
# Trained shallow, tested deep: every source-side variant on made sentences with gold trees.
#
#   bash examples/depth.sh [OUT]         (default: runs/depth)
#
# Training sentences have at most one level of relative clauses, test sentences 0-1 (test.1) or 2 to
# 4 (test.4), none of them seen in training. The trees are the grammar's own, so the test measures
# what a variant gains from a correct tree. VARIANTS, SEEDS, PRESET, STEPS, SETTINGS and JOBS may be
# set. You can interrupt and restart it: files that exist are kept. OUT/table.md is the result.
set -euo pipefail
out=${1:-runs/depth}
variants=${VARIANTS:-vanilla pascal gps struct-abs struct-rel struct-abs+struct-rel rel dep dep+rel
  tags sisa multitask mixed-encoder}
seeds=${SEEDS:-1} preset=${PRESET:-tiny} steps=${STEPS:-1000} jobs=${JOBS:-2} settings=${SETTINGS:-}
tests="test.1 test.4"
mkdir -p "$out/runs"
out=$(realpath "$out")

if [ ! -s "$out/ready" ]; then
  synmt synth -n 8000 --seed 1 --depth 1 --unique --out-template "$out/train.{ext}"
  synmt synth -n 300 --seed 2 --depth 1 --unique --exclude "$out/train.en" --out-template "$out/dev.{ext}"
  synmt synth -n 500 --seed 3 --depth 1 --unique --exclude "$out/train.en" --out-template "$out/test.1.{ext}"
  synmt synth -n 500 --seed 4 --phenomena relative --min-depth 2 --depth 4 --unique --out-template "$out/test.4.{ext}"
  synmt featurize "$out/train.en.conllu" | synmt multitask --format symbols |
    synmt vocab train --size 800 --symbols - -o "$out/spm.model" "$out/train.en" "$out/train.de"
  for set in train dev $tests; do
    synmt featurize --spm "$out/spm.model" --tgt "$out/$set.de" -o "$out/$set.jsonl" "$out/$set.en.conllu"
  done
  for scheme in multitask mixed-encoder; do
    synmt multitask --spm "$out/spm.model" --scheme $scheme -o "$out/train.$scheme.jsonl" "$out/train.jsonl"
  done
  synmt multitask --spm "$out/spm.model" --task translate -o "$out/dev.multitask.jsonl" "$out/dev.jsonl"
  echo ready > "$out/ready"
fi

run() { # VARIANT SEED: train, then translate the test sets
  local train=$out/train.jsonl dev=$out/dev.jsonl run=$out/runs/$1.$2 set
  case $1 in
    multitask) train=$out/train.multitask.jsonl dev=$out/dev.multitask.jsonl ;;
    mixed-encoder) train=$out/train.mixed-encoder.jsonl ;;
  esac
  [ ! -s "$run.test.4.de" ] || return 0
  # shellcheck disable=SC2086
  synmt train --variant "$1" --preset "$preset" --max-steps "$steps" --seed "$2" --threads 1 \
    --set training.metric=loss --train "$train" --dev "$dev" --spm "$out/spm.model" --run "$run" \
    $settings 2>> "$run.log"
  for set in $tests; do
    synmt translate -m "$run" --beam "${BEAM:-4}" --threads 1 -o "$run.$set.de" "$out/$set.jsonl" 2>> "$run.log"
  done
}

for seed in $seeds; do
  for variant in $variants; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    run "$variant" "$seed" &
  done
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n; done

{
  echo "| variant | seed | BLEU, depth 0-1 | BLEU, depth 2-4 | chrF, depth 2-4 | p of the last BLEU |"
  echo "| --- | --- | --- | --- | --- | --- |"
  for seed in $seeds; do
    for variant in $variants; do
      run=$out/runs/$variant.$seed
      one=$(synmt score --get bleu "$out/test.1.de" "$run.test.1.de")
      four=$(synmt score --get bleu "$out/test.4.de" "$run.test.4.de")
      chrf=$(synmt score --get chrf "$out/test.4.de" "$run.test.4.de")
      p=-
      [ "$variant" = vanilla ] || p=$(synmt score -M bleu --format json "$out/test.4.de" "$out/runs/vanilla.$seed.test.4.de" \
        "$run.test.4.de" | python3 -c 'import json, sys; print("%.3f" % json.load(sys.stdin)["systems"][1]["paired"]["bleu"]["p"])')
      printf '| %s | %s | %.2f | %.2f | %.2f | %s |\n' "$variant" "$seed" "$one" "$four" "$chrf" "$p"
    done
  done
} > "$out/table.md"
cat "$out/table.md"
