#!/usr/bin/env bash
# Is it the tree? Trains a variant of an experiment (`synmt init`) again with wrong trees, and
# compares it with the models that were trained with the parser's.
#
#   bash examples/wrong-trees.sh EXPERIMENT [VARIANT] [TREES]
#
# EXPERIMENT: its folder, after `make`. VARIANT: one of its variants that read arcs of trees, by default
# the first (random trees leave most labels as they are, so that they say nothing about tags). TREES:
# `random`, drawn from all trees over the words; `borrowed`, the parser's tree of another sentence of the
# same set with as many words, so that arcs are as long and trees as deep as the parser's, but do not
# belong to the words; `flat`, in which all words hang from the first one, so that there is no syntax; or
# `shallow`, in which all words hang from the parser's root and keep their labels.
# Each sentence gets one tree, the same for all seeds.
#
# It trains one seed after the other. Records, runs, translations and scores.VARIANT.txt, which
# compares them with the parser's models and with the experiment's first variant, go to
# EXPERIMENT/TREES-trees; run it again after an interruption, and trainings go on.
set -euo pipefail
if [ $# -lt 1 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
if [ ! -e "$1/data/READERS" ]; then
  echo "wrong-trees.sh: $1 is not the folder of an experiment (synmt init, make)" >&2
  exit 2
fi
cd "$1"
if [ -e variants.py ]; then export SYNMT_VARIANTS=variants.py; fi # a copy of variants of your own
variant=${2:-$(cut -d" " -f1 data/READERS)} trees=${3:-random}
case $trees in
  random | borrowed | flat | shallow) ;;
  *) echo "wrong-trees.sh: TREES is random, borrowed, flat or shallow, not $trees" >&2 && exit 2 ;;
esac
out=$trees-trees
[ -n "$variant" ] || { echo "wrong-trees.sh: no variant of this experiment reads trees" >&2; exit 2; }
case " $(cat data/READERS) " in
  *" $variant "*) ;;
  *) echo "wrong-trees.sh: name a variant of this experiment that reads trees: $(cat data/READERS)" >&2
    exit 2 ;;
esac
seeds=$(cat data/SEEDS)
for seed in $seeds; do
  if [ ! -e "output/$variant.$seed.txt" ]; then
    echo "wrong-trees.sh: $1/output/$variant.$seed.txt is missing: run make in $1 first" >&2
    exit 2
  fi
done
if ls output/"$variant".*.conllu &> /dev/null; then
  echo "wrong-trees.sh: $variant writes trees, and records with wrong ones are not made here" >&2
  exit 2
fi
mkdir -p "$out"
# The first variant that writes no trees; its length penalty is that of all but those that do
first=$(cat data/SHARED)
tuned=() parsed=() wrong=() plain=()
for seed in $seeds; do
  tuned+=(--tuned "output/$first.$seed.lenpen.json")
  if [ "$first" != "$variant" ]; then plain+=("$first=output/$first.$seed.txt"); fi
done

random() { # random FILE SEED
  synmt perturb --seed "$2" --tree random "$1"
}
# borrowed FILE: heads and labels of the next sentence with as many words, and at the end of the file
# those of the first one; a sentence that is alone with its length keeps its own.
borrowed() {
  LC_ALL=C awk 'BEGIN { FS = OFS = "\t" }
    FNR == 1 { sentence = 1; n = 0 }
    { is_word = $1 ~ /^[0-9]+$/; n += is_word }
    NR == FNR { # the first reading: trees, and which sentences have as many words
      if (is_word) tree[sentence, n] = $7 OFS $8
      if (!NF) { size[sentence] = n; rank[sentence] = ++count[n]; ranked[n, count[n]] = sentence }
    }
    NR > FNR {
      if (is_word) {
        words = size[sentence]
        split(tree[ranked[words, rank[sentence] % count[words] + 1], n], lent, FS)
        $7 = lent[1]; $8 = lent[2]; $9 = "_"
      }
      print
    }
    !NF { sentence++; n = 0 }' "$1" "$1"
}

flat() { # flat FILE
  LC_ALL=C awk 'BEGIN { FS = OFS = "\t" }
    $1 ~ /^[0-9]+$/ { $7 = $1 == 1 ? 0 : 1; $8 = $1 == 1 ? "root" : "dep"; $9 = "_" }
    { print }' "$1"
}

shallow() { # shallow FILE
  LC_ALL=C awk 'BEGIN { FS = OFS = "\t" }
    { line[++n] = $0; if ($1 ~ /^[0-9]+$/ && $7 == 0) root = $1 }
    !NF { # a sentence is read: now its root is known
      for (i = 1; i <= n; i++) {
        $0 = line[i]
        if ($1 ~ /^[0-9]+$/) { if ($7 != 0) $7 = root; $9 = "_" }
        print
      }
      n = 0
    }' "$1"
}

draw=0
for part in test train dev; do
  draw=$((draw + 1))
  "$trees" "data/$part.src.conllu" "$draw" |
    synmt featurize --spm spm.model --tgt "text/$part.tgt" -o "$out/$part.jsonl"
done

read -ra options < <(cat "data/OPTIONS_$variant") || true # as in the experiment
for seed in $seeds; do
  name=$variant.$seed
  begin=() # with the weights that the experiment's model began with, if any
  if [ -e "given/pretrained/$name" ]; then begin=(--pretrained "given/pretrained/$name"); fi
  synmt train "${begin[@]}" "${options[@]}" --preset "$(cat data/PRESET)" --config config.toml --threads 1 --spm spm.model \
    --variant "$variant" --seed "$seed" --train "$out/train.jsonl" --dev "$out/dev.jsonl" \
    --run "$out/runs/$name"
  rm -rf "$out/models/$name"
  mkdir -p "$out/models"
  synmt average -m "$out/runs/$name" -o "$out/models/$name"
  synmt translate -m "$out/models/$name" --threads 1 "${tuned[@]}" \
    -o "$out/$name.txt" "$out/test.jsonl"
  wrong+=("$trees=$out/$name.txt")
  parsed+=("parsed=output/$name.txt")
done
synmt score -M bleu,chrf,ter -o "$out/scores.$variant.txt" text/test.tgt \
  "${wrong[@]}" "${parsed[@]}" "${plain[@]}"
cat "$out/scores.$variant.txt"
echo
echo "parsed - $trees is what the parser's trees are worth to $variant over $trees ones."
if [ ${#plain[@]} -gt 0 ]; then
  echo "If $first is worse than $trees, $variant is better than $first even with $trees trees."
fi
echo "These scores: $1/$out/scores.$variant.txt"
