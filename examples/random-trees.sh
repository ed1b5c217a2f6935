#!/usr/bin/env bash
# Is it the tree? A variant trained again with random trees, against its models of an experiment
# (`synmt init`), which were trained with the parser's.
#
#   bash examples/random-trees.sh EXPERIMENT [VARIANT]
#
# EXPERIMENT: its folder, after `make`. VARIANT: dep+rel, or another of its variants that reads trees.
# Each sentence gets one random tree, the same for all seeds. Records, runs, translations and
# scores.VARIANT.txt go to EXPERIMENT/random-trees; run it again after an interruption, and trainings
# go on.
set -euo pipefail
cd "$1"
variant=${2:-dep+rel} out=random-trees
# The first variant, on which the experiment tuned the length penalty
baseline=$(sed -nE 's/^VARIANTS := ([^ ]+).*/\1/p' Makefile)
ls output/"$variant".*.txt > /dev/null # the experiment has it
mkdir -p "$out"
tuned=() parsed=() random=()
for file in output/"$baseline".*.lenpen.json; do tuned+=(--tuned "$file"); done

draw=0
for part in test train dev; do
  draw=$((draw + 1))
  synmt perturb --seed "$draw" --tree random "data/$part.src.conllu" |
    synmt featurize --spm spm.model --tgt "text/$part.tgt" -o "$out/$part.jsonl"
done

for file in output/"$variant".*.txt; do
  name=${file##*/} name=${name%.txt}
  synmt train --preset "$(cat data/PRESET)" --config config.toml --threads 1 --spm spm.model \
    --variant "$variant" --seed "${name##*.}" --train "$out/train.jsonl" --dev "$out/dev.jsonl" \
    --run "$out/runs/$name"
  rm -rf "$out/models/$name"
  mkdir -p "$out/models"
  synmt average -m "$out/runs/$name" -o "$out/models/$name"
  synmt translate -m "$out/models/$name" --beam 5 --threads 1 "${tuned[@]}" \
    -o "$out/$name.txt" "$out/test.jsonl"
  random+=("random=$out/$name.txt")
  parsed+=("$variant=$file")
done
synmt score -M bleu,chrf,ter -o "$out/scores.$variant.txt" text/test.tgt \
  "${random[@]}" "${parsed[@]}"
cat "$out/scores.$variant.txt"
