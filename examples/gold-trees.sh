#!/usr/bin/env bash
# What a gold tree is worth to the models of an experiment (`synmt init`): sentences with gold trees
# are translated with the gold tree, with the tree that the experiment's parser gives the same
# words, and with a random one.
#
#   bash examples/gold-trees.sh EXPERIMENT GOLD REFERENCE [VARIANT]
#
# EXPERIMENT: its folder, made with `init --parser`, after `make`. GOLD: sentences with gold trees (CoNLL-U). REFERENCE: their
# translations, one a line. VARIANT: one of its variants that read trees, by default the first.
# Translations go to EXPERIMENT/gold-trees, with scores.VARIANT.txt, in which each model is compared
# with itself, and VARIANT-FIRST.txt, with the experiment's first variant.
set -euo pipefail
if [ $# -lt 3 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
gold=$(realpath "$2") reference=$(realpath "$3")
cd "$1"
if [ -e variants.py ]; then export SYNMT_VARIANTS=variants.py; fi # a copy of variants of your own
variant=${4:-$(cut -d" " -f1 data/READERS)} out=gold-trees
# The first variant that writes no trees; its length penalty is that of all but those that do
baseline=$(cat data/SHARED)
[ -n "$variant" ] || { echo "gold-trees.sh: no variant of this experiment reads trees" >&2; exit 2; }
case " $(cat data/READERS) " in
  *" $variant "*) ;;
  *) echo "gold-trees.sh: name a variant of this experiment that reads trees: $(cat data/READERS)" >&2
    exit 2 ;;
esac
seeds=$(cat data/SEEDS) models=() matched=()
for seed in $seeds; do
  ls -d "models/$variant.$seed" > /dev/null # it was made
  models+=("models/$variant.$seed")
done
if [ "${#models[@]}" -gt 1 ]; then matched=(--matched); fi # of several seeds
mkdir -p "$out"
systems=() plain=()

ln -sf "$gold" "$out/gold.conllu"
synmt parse -m src.udpipe --from conllu -o "$out/parsed.conllu" "$gold"
synmt perturb --seed 1 --tree random -o "$out/random.conllu" "$gold"
synmt evaltree "$gold" "$out/parsed.conllu" | grep -E '^[UL]AS '

translate() { # MODEL TREES
  local model=${1##*/} penalty=$baseline tuned=() seed
  if [ -e "output/$model.conllu" ]; then penalty=${model%.*}; fi
  for seed in $seeds; do tuned+=(--tuned "output/$penalty.$seed.lenpen.json"); done
  synmt translate -m "$1" --threads 1 "${tuned[@]}" -o "$out/$model.$2.txt" "$out/$2.conllu"
}
for kind in parsed gold random; do
  for model in "${models[@]}"; do
    translate "$model" "$kind"
    systems+=("$kind=$out/${model##*/}.$kind.txt")
  done
done
if [ -n "$baseline" ]; then # not where all variants write trees
  for seed in $seeds; do
    translate "models/$baseline.$seed" parsed
    plain+=("$baseline=$out/$baseline.$seed.parsed.txt")
  done
fi
buckets=(--by length:10,20,30 --by distance:5,10,15 --src-trees "$gold")
synmt score "${matched[@]}" -M bleu,chrf "${buckets[@]}" -o "$out/scores.$variant.txt" "$reference" "${systems[@]}"
head -n 7 "$out/scores.$variant.txt"
if [ -n "$baseline" ]; then
  synmt score -M bleu,chrf "${buckets[@]}" -o "$out/$variant-$baseline.txt" "$reference" "${plain[@]}" "${systems[@]}"
  head -n 7 "$out/$variant-$baseline.txt"
fi
