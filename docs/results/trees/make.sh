#!/usr/bin/env bash
# Makes the scores of one direction from the translations in its folder:
#
#   bash docs/results/trees/make.sh en-de
set -euo pipefail
if [ $# -lt 1 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
shopt -s nullglob
cd "$(dirname "$0")/$1"
systems() { # VARIANT...: fills `given` with the translations of their seeds
  given=()
  local variant file
  for variant; do
    for file in "$variant".?.txt*; do given+=("$variant=$file"); done
  done
}
buckets=(--by length:10,15,20 --by distance:5,8,11)
if [ "$1" = fr-en ]; then buckets=(--by length:20,30,40 --by distance:10,20,30); fi # long sentences
synmt challenge --phenomenon particle --phenomenon reflexive --phenomenon preposition-stranding \
  --format labels -o phenomena.txt reference.conllu.xz
systems vanilla linearized bitran parent gcn
synmt score -j 0 -M bleu,chrf,ter --src source.txt* --ref-trees reference.conllu.xz "${buckets[@]}" \
  --by labels:phenomena.txt -o scores.txt reference.txt* "${given[@]}"
for baseline in bitran linearized; do # is it the tree, and is it more than to write it?
  writers=(linearized parent gcn)
  if [ "$baseline" = linearized ]; then writers=(parent gcn); fi
  systems "$baseline" "${writers[@]}"
  synmt score -M bleu,chrf -o "against-$baseline.txt" reference.txt* "${given[@]}"
done
cat scores.txt
