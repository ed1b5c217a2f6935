#!/usr/bin/env bash
# The whole pipe on real text: Multi30k English-German, the plain Transformer and PASCAL.
#
#   bash examples/multi30k.sh DATA MODEL [OUT]
#
# DATA: a folder with {train,val,test_2016_flickr}.{en,de}.gz (multi30k/dataset, task 1, raw).
# MODEL: a UDPipe model for English. OUT: where everything goes (default: runs/multi30k).
# Both models train at the same time, one core each, for about an hour on two cores of 2024.
# You can interrupt and restart it: training resumes where it stopped.
set -euo pipefail
data=$1 model=$2 out=${3:-runs/multi30k}
steps=${STEPS:-12000} seed=${SEED:-1} vocabulary=${VOCABULARY:-4000}
mkdir -p "$out"

for set in train val test_2016_flickr; do
  for side in en de; do
    [ -s "$out/$set.$side" ] || gzip -dc "$data/$set.$side.gz" > "$out/$set.$side"
  done
done

[ -s "$out/spm.model" ] ||
  synmt vocab train --size "$vocabulary" -o "$out/spm.model" "$out/train.en" "$out/train.de"

for set in train val test_2016_flickr; do
  [ -s "$out/$set.conllu" ] || synmt parse -j 0 -m "$model" -o "$out/$set.conllu" "$out/$set.en"
  [ -s "$out/$set.jsonl" ] ||
    synmt featurize --spm "$out/spm.model" --tgt "$out/$set.de" -o "$out/$set.jsonl" "$out/$set.conllu"
done

train() { # VARIANT
  synmt train --variant "$1" --preset tiny --max-steps "$steps" --seed "$seed" --threads 1 \
    --train "$out/train.jsonl" --dev "$out/val.jsonl" --spm "$out/spm.model" --parser "$model" \
    --run "$out/$1" 2>> "$out/$1.log"
}
train vanilla & first=$!
train pascal & second=$!
wait "$first"; wait "$second"

for variant in vanilla pascal; do
  synmt translate -m "$out/$variant" --beam 5 --lenpen 0.6 -o "$out/$variant.de" "$out/test_2016_flickr.jsonl"
done
synmt score -M bleu,chrf,ter -o "$out/scores.txt" "$out/test_2016_flickr.de" "$out/vanilla.de" "$out/pascal.de" \
  --by length:10,15,20 --src "$out/test_2016_flickr.en"
cat "$out/scores.txt"
