#!/usr/bin/env bash
# Europarl English-French, parliament debates with long sentences: variants over seeds.
#
#   bash examples/europarl.sh DATA EN_MODEL [OUT] [VARIANTS] [SEEDS] [PAIRS] [PRESET] [CONFIG]
#
# DATA: a folder with {train,dev,test}.{en,fr}.xz (docs/results.md, "Plans, data and parsers", says which), of
# which the first PAIRS (30000) of train are used and the first 1,000 of dev. EN_MODEL: a UDPipe model for English. OUT: a new folder (default:
# runs/europarl); `make -j2 -C OUT` goes on after an interruption. PRESET: tiny (the default), or
# base on a GPU, which serves one training at a time: `JOBS=1 bash ...`. CONFIG: settings in place of
# those that `init` writes, such as docs/results/europarl-200000/config.toml.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
data=$1 model=$2 out=${3:-runs/europarl} variants=${4:-vanilla,pascal,rel,dep+rel} seeds=${5:-3} pairs=${6:-30000}
preset=${7:-tiny} config=${8:-}
[ ! -e "$out" ] || { echo "europarl.sh: $out exists; go on with make -C $out" >&2; exit 2; }
text=$(dirname "$out")/text.$(basename "$out")
mkdir -p "$text"
for side in en fr; do
  xz -dc "$data/train.$side.xz" | sed -n "1,${pairs}p" > "$text/train.$side"
  xz -dc "$data/dev.$side.xz" | sed -n '1,1000p' > "$text/dev.$side"
  xz -dc "$data/test.$side.xz" > "$text/test.$side"
done
synmt init "$out" --preset "$preset" --parser "$model" --variants "$variants" --seeds "$seeds" \
  --src "$text/train.en" --tgt "$text/train.fr" --dev-src "$text/dev.en" --dev-tgt "$text/dev.fr" \
  --test-src "$text/test.en" --test-tgt "$text/test.fr"
[ -z "$config" ] || cp "$config" "$out/config.toml"
make -j"${JOBS:-2}" -C "$out"
