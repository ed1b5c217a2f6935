#!/usr/bin/env bash
# Every source-side variant on real text with the same budget: Multi30k and Books, English-German.
#
#   bash examples/compare.sh DATA MODEL [OUT]
#
# DATA: a folder with multi30k/{train,val,test_2016_flickr}.{en,de}.gz and books/{train,dev,test}.
# MODEL: a UDPipe model for English. OUT: where everything goes (default: runs/compare).
# VARIANTS, SEEDS, PRESET, STEPS, SETTINGS (more --set options), FILTER (options of synmt filter for
# the training and dev pairs), VOCABULARY, BEAM, EDGES and JOBS (trainings at a time) may be set. You
# can interrupt and restart it: files that exist are kept, and training resumes.
# OUT/table.md is the result, made from the figures in OUT/score.*.json.
set -euo pipefail
data=$1 model=$2 out=${3:-runs/compare}
variants=${VARIANTS:-vanilla pascal gps struct-abs struct-rel struct-abs+struct-rel rel dep dep+rel
  tags sisa multitask mixed-encoder}
seeds=${SEEDS:-1 2 3} preset=${PRESET:-small} steps=${STEPS:-4000} jobs=${JOBS:-2}
settings=${SETTINGS:-}
tests="multi30k books"
mkdir -p "$out"
out=$(realpath "$out")

text() { # NAME FOLDER/SET...: join several sets into one text, on both sides
  local name=$1 side one
  shift
  for side in en de; do
    [ -s "$out/$name.$side" ] || for one in "$@"; do gzip -dc "$data/$one.$side.gz"; done > "$out/$name.$side"
  done
}

fit() { # NAME: keep only the pairs that FILTER lets through
  [ -n "${FILTER:-}" ] || return 0
  # shellcheck disable=SC2086
  synmt filter $FILTER --tgt "$out/$1.de" -o "$out/$1.fit.en" --tgt-out "$out/$1.fit.de" "$out/$1.en"
  for side in en de; do mv "$out/$1.fit.$side" "$out/$1.$side"; done
}

records() { # NAME: trees, then records
  [ -s "$out/$1.conllu" ] || synmt parse -j 0 -m "$model" -o "$out/$1.conllu" "$out/$1.en"
  [ -s "$out/$1.jsonl.gz" ] || synmt featurize -j 0 --spm "$out/spm.model" --tgt "$out/$1.de" \
    -o "$out/$1.jsonl.gz" "$out/$1.conllu"
}

if [ ! -s "$out/ready" ]; then
  text train multi30k/train books/train
  text dev multi30k/val books/dev
  fit train
  fit dev
  text multi30k multi30k/test_2016_flickr
  text books books/test
  # The brackets of multitask and mixed-encoder are symbols that other variants never see.
  [ -s "$out/train.conllu" ] || synmt parse -j 0 -m "$model" -o "$out/train.conllu" "$out/train.en"
  [ -s "$out/spm.model" ] || synmt featurize "$out/train.conllu" | synmt multitask --format symbols |
    synmt vocab train --size "${VOCABULARY:-8000}" --symbols - -o "$out/spm.model" "$out/train.en" "$out/train.de"
  for set in train dev $tests; do records "$set"; done
  for scheme in multitask mixed-encoder; do
    synmt multitask --spm "$out/spm.model" --scheme $scheme -o "$out/train.$scheme.jsonl.gz" "$out/train.jsonl.gz"
  done
  synmt multitask --spm "$out/spm.model" --task translate -o "$out/dev.multitask.jsonl.gz" "$out/dev.jsonl.gz"
  echo ready > "$out/ready"
fi

run() { # VARIANT SEED: train, then translate the test sets
  local train=$out/train.jsonl.gz dev=$out/dev.jsonl.gz run=$out/runs/$1.$2 set
  case $1 in
    multitask) train=$out/train.multitask.jsonl.gz dev=$out/dev.multitask.jsonl.gz ;;
    mixed-encoder) train=$out/train.mixed-encoder.jsonl.gz ;;
  esac
  [ ! -s "$run.books.de" ] || return 0
  # shellcheck disable=SC2086
  synmt train --variant "$1" --preset "$preset" --max-steps "$steps" --seed "$2" --threads 1 \
    --train "$train" --dev "$dev" --spm "$out/spm.model" --run "$run" $settings 2>> "$run.log"
  for set in $tests; do
    [ -s "$run.$set.de" ] ||
      synmt translate -m "$run" --beam "${BEAM:-5}" --threads 1 -o "$run.$set.de" "$out/$set.jsonl.gz" 2>> "$run.log"
  done
}

mkdir -p "$out/runs"
for seed in $seeds; do
  for variant in $variants; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    run "$variant" "$seed" &
  done
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n; done

for seed in $seeds; do
  for set in $tests; do
    systems=()
    for variant in $variants; do systems+=("$out/runs/$variant.$seed.$set.de"); done
    synmt score -M bleu,chrf --format json --by "length:${EDGES:-20,30,40,50}" --src "$out/$set.en" \
      -o "$out/score.$set.$seed.json" "$out/$set.de" "${systems[@]}"
  done
done
python3 "$(dirname "$0")/compare_table.py" "$out" > "$out/table.md"
cat "$out/table.md"
