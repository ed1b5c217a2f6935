#!/usr/bin/env bash
# Decoders that write trees (linearized, parent, gcn), and two that do not, over seeds.
#
#   bash examples/trees.sh TRAIN DEV TEST SRC TGT TGT_MODEL [OUT] [VARIANTS] [SEEDS]
#
# TRAIN, DEV, TEST: file names without the suffix of a language: data/train for data/train.en.gz and
# data/train.de.gz. SRC, TGT: those suffixes, such as en and de. TGT_MODEL: a UDPipe model for the
# target language. OUT: a new folder (default: runs/trees-SRC-TGT); `make -j2 -C OUT` goes on after
# an interruption.
#
# Decoders that read their prefix again for each token take their time, so all models have two
# layers in the decoder and 6,000 updates. On a core of 2024 a training takes 10 minutes (vanilla) to
# two hours (gcn) with captions, and up to four hours with long sentences.
set -euo pipefail
if [ $# -lt 6 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
train=$1 dev=$2 test=$3 src=$4 tgt=$5 model=$6 out=${7:-runs/trees-$4-$5}
variants=${8:-vanilla,linearized,bitran,parent,gcn} seeds=${9:-3}
file() {
  for ending in .gz .xz .bz2 .zst ""; do [ ! -e "$1$ending" ] || break; done
  printf %s "$1$ending"
}
synmt init "$out" --preset tiny --tgt-parser "$model" --variants "$variants" --seeds "$seeds" \
  --src "$(file "$train.$src")" --tgt "$(file "$train.$tgt")" \
  --dev-src "$(file "$dev.$src")" --dev-tgt "$(file "$dev.$tgt")" \
  --test-src "$(file "$test.$src")" --test-tgt "$(file "$test.$tgt")"
printf '%s\n' 'max_steps = 6000      # updates' '' '[model]' 'decoder_layers = 2' \
  >> "$out/config.toml"
# Search is exact, as in docs/results/trees; --patience 1, which init chooses, takes far less time.
sed -e 's/^PATIENCE := 1$/PATIENCE :=/' -e 's/^LENPENS := .*/LENPENS := 0.2:1.6/' "$out/Makefile" \
  > "$out/exact"
mv "$out/exact" "$out/Makefile"
make -j2 -C "$out"
