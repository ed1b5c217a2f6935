#!/usr/bin/env bash
# Decoders that write trees, and what each part of them is worth, with the same budget: Multi30k and
# Books, English-German and back. Choshen and Abend (2021), Tables 1 and 7-9.
#
#   bash examples/trees.sh DATA EN_MODEL DE_MODEL [OUT]
#
# DATA: a folder with multi30k/{train,val,test_2016_flickr}.{en,de}.gz, books/{train,dev,test} and
# challenge/en_{particle,preposition_stranding}. EN_MODEL, DE_MODEL: UDPipe models of both
# languages. OUT: where everything goes (default: runs/trees).
# DIRECTIONS, SYSTEMS, SEEDS, PRESET, STEPS, SETTINGS (more --set options), FILTER (options of synmt
# filter, for all pairs except those of Multi30k's test set), VOCABULARY, BEAM and JOBS (trainings at
# a time) may be set. You can interrupt and restart it: files that exist are kept, and training resumes.
# OUT/table.md is the result, made from the figures in OUT/score.*.json and OUT/trees.*.json.
set -euo pipefail
data=$1 en=$2 de=$3 out=${4:-runs/trees}
directions=${DIRECTIONS:-en-de de-en}
systems=${SYSTEMS:-vanilla bitran linearized parent gcn gcn-labels gcn-gates}
seeds=${SEEDS:-1} preset=${PRESET:-small} steps=${STEPS:-4000} jobs=${JOBS:-2}
settings=${SETTINGS:-}
tests="multi30k books particle stranding" # the last two are challenge sets
mkdir -p "$out/runs"
out=$(realpath "$out")

text() { # NAME FOLDER/SET...: join several sets into one text, on both sides
  local name=$1 side one
  shift
  for side in en de; do
    [ -s "$out/$name.$side" ] || for one in "$@"; do gzip -dc "$data/$one.$side.gz"; done > "$out/$name.$side"
  done
}

fit() { # NAME: keep only the pairs that FILTER lets through
  [ -n "${FILTER:-}" ] || return 0
  # shellcheck disable=SC2086
  synmt filter $FILTER --tgt "$out/$1.de" -o "$out/$1.fit.en" --tgt-out "$out/$1.fit.de" "$out/$1.en"
  for side in en de; do mv "$out/$1.fit.$side" "$out/$1.$side"; done
}

parser() { # SIDE: the model of that language
  [ "$1" = en ] && echo "$en" || echo "$de"
}

variant() { # SYSTEM: the options that select it
  case $1 in
    gcn-labels) echo --variant gcn --set gcn.labels=false ;;
    gcn-gates) echo --variant gcn --set gcn.labels=false --set gcn.gates=false ;;
    *) echo --variant "$1" ;;
  esac
}

if [ ! -s "$out/ready" ]; then
  text train multi30k/train books/train
  text dev multi30k/val books/dev
  text multi30k multi30k/test_2016_flickr
  text books books/test
  text particle challenge/en_particle
  text stranding challenge/en_preposition_stranding
  for set in train dev books particle stranding; do fit $set; done
  for set in train dev; do
    for side in en de; do
      [ -s "$out/$set.$side.conllu" ] ||
        synmt parse -j 0 -m "$(parser $side)" -o "$out/$set.$side.conllu" "$out/$set.$side"
    done
  done
  [ -s "$out/spm.model" ] || synmt linearize --format symbols --glue "$out"/{train,dev}.{en,de}.conllu |
    synmt vocab train --size "${VOCABULARY:-8000}" --symbols - -o "$out/spm.model" "$out/train.en" "$out/train.de"
  for set in train dev; do
    for direction in $directions; do
      [ -s "$out/$set.$direction.jsonl.gz" ] ||
        synmt featurize -j 0 --spm "$out/spm.model" --tgt-conllu "$out/$set.${direction#*-}.conllu" --glue \
          --multiword token -o "$out/$set.$direction.jsonl.gz" "$out/$set.${direction%-*}.conllu"
    done
  done
  echo ready > "$out/ready"
fi

translate() { # DIRECTION RUN SET: the text; from models that write trees also the trees, judged by a parser
  local source=${1%-*} target=${1#*-} run=$2 hyp=$2.$3
  [ ! -s "$hyp.$target" ] || return 0
  case $run in
    *.vanilla.* | *.bitran.*) synmt translate -m "$run" --beam "${BEAM:-4}" --threads 1 -o "$hyp.$target" "$out/$3.$source" ;;
    *)
      synmt translate -m "$run" --beam "${BEAM:-4}" --threads 1 --format conllu -o "$hyp.conllu" "$out/$3.$source"
      synmt parse --from conllu -m "$(parser "$target")" -o "$hyp.parsed.conllu" "$hyp.conllu"
      synmt evaltree --format json -o "$out/trees.$3.${run##*/}.json" "$hyp.parsed.conllu" "$hyp.conllu"
      sed -n 's/^# text = //p' "$hyp.conllu" > "$hyp.$target"
      ;;
  esac
}

run() { # DIRECTION SYSTEM SEED: train, then translate the test sets
  local run=$out/runs/$1.$2.$3 set
  # shellcheck disable=SC2046,SC2086
  synmt train $(variant "$2") --preset "$preset" --max-steps "$steps" --seed "$3" --threads 1 --spm "$out/spm.model" \
    --train "$out/train.$1.jsonl.gz" --dev "$out/dev.$1.jsonl.gz" --run "$run" $settings 2>> "$run.log"
  for set in $tests; do translate "$1" "$run" "$set" 2>> "$run.log"; done
}

for seed in $seeds; do
  for direction in $directions; do
    for system in $systems; do
      while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
      run "$direction" "$system" "$seed" &
    done
  done
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n; done

for seed in $seeds; do
  for direction in $directions; do
    target=${direction#*-}
    for set in $tests; do
      outputs=()
      for system in $systems; do outputs+=("$out/runs/$direction.$system.$seed.$set.$target"); done
      synmt score -M bleu,chrf+ --format json -o "$out/score.$direction.$set.$seed.json" \
        "$out/$set.$target" "${outputs[@]}"
    done
  done
done
# The paper's sign test: a unit is a (test set, metric) pair.
synmt score --sign-over --format json -o "$out/sign.json" "$out"/score.*.json
python3 "$(dirname "$0")/trees_table.py" "$out" > "$out/table.md"
cat "$out/table.md"
