#!/usr/bin/env bash
# What a right tree is worth to the models of an experiment (`synmt init`): the test set with the
# parser's trees, with a tenth and three tenths of the heads wrong, with random trees, and with the
# parser's heads but all labels wrong.
#
#   bash examples/right-trees.sh EXPERIMENT [VARIANT] [OTHER_PARSER]
#
# EXPERIMENT: its folder, after `make`. VARIANT: one of its variants that read trees, by default the
# first. OTHER_PARSER: a UDPipe model whose trees are tried, too. Translations and scores.VARIANT.txt
# go to EXPERIMENT/right-trees.
set -euo pipefail
if [ $# -lt 1 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
if [ ! -e "$1/data/READERS" ]; then
  echo "right-trees.sh: $1 is not the folder of an experiment (synmt init, make)" >&2
  exit 2
fi
parser=${3:+$(realpath "$3")}
cd "$1"
if [ -e variants.py ]; then export SYNMT_VARIANTS=variants.py; fi # a copy of variants of your own
variant=${2:-$(cut -d" " -f1 data/READERS)} out=right-trees
[ -n "$variant" ] || { echo "right-trees.sh: no variant of this experiment reads trees" >&2; exit 2; }
case " $(cat data/READERS) " in
  *" $variant "*) ;;
  *) echo "right-trees.sh: name a variant of this experiment that reads trees: $(cat data/READERS)" >&2
    exit 2 ;;
esac
# The first variant's length penalty, which is that of all but those that write trees
penalty=$(cat data/SHARED)
if ls output/"$variant".*.conllu &> /dev/null; then penalty=$variant; fi
models=() tuned=() systems=() matched=()
for seed in $(cat data/SEEDS); do
  ls -d "models/$variant.$seed" > /dev/null # it was made
  models+=("models/$variant.$seed")
  tuned+=(--tuned "output/$penalty.$seed.lenpen.json")
  systems+=("parsed=output/$variant.$seed.txt")
done
if [ "${#models[@]}" -gt 1 ]; then matched=(--matched); fi # of several seeds
mkdir -p "$out"

synmt perturb --seed 1 --head-noise 0.1 -o "$out/wrong-10.conllu" data/test.src.conllu
synmt perturb --seed 1 --head-noise 0.3 -o "$out/wrong-30.conllu" data/test.src.conllu
synmt perturb --seed 1 --tree random -o "$out/random.conllu" data/test.src.conllu
synmt perturb --seed 1 --label-noise 1 -o "$out/labels.conllu" data/test.src.conllu
kinds=(wrong-10 wrong-30 random labels)
if [ -n "$parser" ]; then
  synmt parse -m "$parser" -o "$out/other.conllu" text/test.src
  synmt evaltree data/test.src.conllu "$out/other.conllu" | grep -E '^[UL]AS '
  kinds+=(other)
fi

for kind in "${kinds[@]}"; do
  synmt featurize --spm spm.model --tgt text/test.tgt -o "$out/$kind.jsonl" "$out/$kind.conllu"
  for model in "${models[@]}"; do
    synmt translate -m "$model" --threads 1 "${tuned[@]}" \
      -o "$out/${model##*/}.$kind.txt" "$out/$kind.jsonl"
    systems+=("$kind=$out/${model##*/}.$kind.txt")
  done
done
synmt score "${matched[@]}" -M bleu,chrf -o "$out/scores.$variant.txt" text/test.tgt "${systems[@]}"
cat "$out/scores.$variant.txt"
echo
echo "These scores: $1/$out/scores.$variant.txt"
