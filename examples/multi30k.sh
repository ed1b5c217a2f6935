#!/usr/bin/env bash
# Multi30k English-German: the plain Transformer and PASCAL, or other variants, over seeds.
#
#   bash examples/multi30k.sh DATA EN_MODEL [OUT] [VARIANTS] [SEEDS]
#
# DATA: a folder with {train,val,test_2016_flickr}.{en,de}.gz (multi30k/dataset, task 1, raw).
# EN_MODEL: a UDPipe model for English. OUT: a new folder (default: runs/multi30k); `make -j2 -C OUT`
# goes on after an interruption. A training takes about half an hour on a core of 2024.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
data=$1 model=$2 out=${3:-runs/multi30k} variants=${4:-vanilla,pascal} seeds=${5:-3}
synmt init "$out" --preset tiny --parser "$model" --variants "$variants" --seeds "$seeds" \
  --src "$data/train.en.gz" --tgt "$data/train.de.gz" \
  --dev-src "$data/val.en.gz" --dev-tgt "$data/val.de.gz" \
  --test-src "$data/test_2016_flickr.en.gz" --test-tgt "$data/test_2016_flickr.de.gz"
make -j2 -C "$out"
