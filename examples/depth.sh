#!/usr/bin/env bash
# Trained shallow, tested deep: variants on made sentences with gold trees.
#
#   bash examples/depth.sh [OUT] [VARIANTS] [SEEDS]
#
# Training sentences have at most one level of relative clauses; half of the test sentences have 0-1,
# the other half 2 to 4, all unseen in training. The trees are the grammar's own, so the test
# measures what a variant gains from a right tree. OUT: a new folder (default: runs/depth).
set -euo pipefail
out=${1:-runs/depth}
variants=${2:-vanilla,pascal,gps,struct-abs,struct-rel,struct-abs+struct-rel,rel,dep,dep+rel,tags,sisa}
seeds=${3:-1}
[ ! -e "$out" ] || { echo "depth.sh: $out exists; go on with make -C $out" >&2; exit 2; }
mkdir -p "$(dirname "$out")"
synmt synth -n 8000 --seed 1 --depth 1 --unique --out-template "$out.train.{ext}"
synmt synth -n 300 --seed 2 --depth 1 --unique --exclude "$out.train.en" --out-template "$out.dev.{ext}"
synmt synth -n 500 --seed 3 --depth 1 --unique --exclude "$out.train.en" --out-template "$out.shallow.{ext}"
synmt synth -n 500 --seed 4 --phenomena relative --min-depth 2 --depth 4 --unique --out-template "$out.deep.{ext}"
for end in en de en.conllu; do cat "$out.shallow.$end" "$out.deep.$end" > "$out.test.$end"; done
cat "$out".{train,dev,test}.en.conllu > "$out.trees.conllu"
synmt init "$out" --preset tiny --src-trees "$out.trees.conllu" --variants "$variants" --seeds "$seeds" \
  --src "$out.train.en" --tgt "$out.train.de" --dev-src "$out.dev.en" --dev-tgt "$out.dev.de" \
  --test-src "$out.test.en" --test-tgt "$out.test.de"
make -j2 -C "$out" BY=length:10,15,20,25
