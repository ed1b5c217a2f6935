#!/usr/bin/env bash
# The main job on made data, in minutes: parse, featurize, train, translate, score.
#
# A small grammar makes English-German pairs with gold trees; a parser is trained on the
# English trees; the plain Transformer and PASCAL learn to translate from 6,000 pairs and are
# tested on sentences that are not in the training set, some with deeper relative clauses.
#
#   bash examples/demo.sh [OUT]          (default: demo)
set -euo pipefail
out=${1:-demo}
mkdir -p "$out"
cd "$out"
steps=${STEPS:-1200}
say() { printf '\n== %s\n' "$*" >&2; }

say "1. Make sentence pairs with gold trees"
synmt synth -n 6000 --seed 1 --depth 1 --unique --out-template train.{ext}
synmt synth -n 300 --seed 2 --depth 1 --unique --exclude train.en --out-template dev.{ext}
synmt synth -n 400 --seed 3 --depth 2 --unique --exclude train.en --out-template test.{ext}
head -n 3 train.en train.de

say "2. Train a parser on 2,000 of the English trees"
synmt synth -n 2000 --seed 4 --depth 2 --unique --exclude test.en --out-template treebank.{ext}
synmt parser train --dev dev.en.conllu -o en.udpipe treebank.en.conllu

say "3. Learn a joint vocabulary of subwords"
synmt vocab train --size 700 -o spm.model train.en train.de

say "4. Parse the raw text and join trees, pieces and targets into records"
for set in train dev test; do
  synmt parse -j 0 -m en.udpipe "$set.en" | synmt featurize --spm spm.model --tgt "$set.de" -o "$set.jsonl"
done

say "5. Train the plain Transformer and PASCAL, one core each"
for variant in vanilla pascal; do
  synmt train --variant "$variant" --preset tiny --max-steps "$steps" --seed 1 --threads 1 \
    --set validate_every=400 --set save_every=400 \
    --train train.jsonl --dev dev.jsonl --parser en.udpipe --run "runs/$variant" \
    2> >(sed "s/^synmt train/$variant/" >&2) &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done

say "6. Translate: one line in, one line out"
synmt translate -m runs/vanilla -o vanilla.de test.jsonl
synmt translate -m runs/pascal < test.en > pascal.de # from raw text: parses inside
for line in 1 2 3; do
  for file in test.en test.de vanilla.de pascal.de; do
    printf '%-11s' "$file"
    sed -n "${line}p" "$file"
  done
done

say "7. Score, with significance and by source length"
synmt score test.de vanilla.de pascal.de -M bleu,chrf --by length:8,12,16 --src test.en
