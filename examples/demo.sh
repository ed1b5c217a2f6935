#!/usr/bin/env bash
# The main job on made data, in minutes: parse, featurize, train, translate, score.
#
# A small grammar makes English-German pairs with gold trees; a parser is trained on English trees;
# the plain Transformer and PASCAL learn to translate from 6,000 pairs and are tested on sentences
# that are not in the training set, some with deeper relative clauses.
#
#   bash examples/demo.sh [OUT]          (default: demo)
#
# In an environment that has synmt; `make demo` sets one up.
set -euo pipefail
out=${1:-demo}
mkdir -p "$out"
cd "$out"
say() { printf '\n== %s\n' "$*" >&2; }

say "1. Make sentence pairs with gold trees"
synmt synth -n 6000 --seed 1 --depth 1 --unique --out-template 'train.{ext}'
synmt synth -n 300 --seed 2 --depth 1 --unique --exclude train.en --out-template 'dev.{ext}'
synmt synth -n 400 --seed 3 --depth 2 --unique --exclude train.en --out-template 'test.{ext}'
head -n 3 train.en train.de

say "2. Train a parser on 2,000 other English trees"
[ -s en.udpipe ] || {
  synmt synth -n 2000 --seed 4 --depth 2 --unique --exclude test.en --out-template 'treebank.{ext}'
  synmt parser train --dev dev.en.conllu -o en.udpipe treebank.en.conllu
}

say "3. Write the experiment: its Makefile has every command that follows"
[ -d experiment ] || synmt init experiment --variants vanilla,pascal --seeds 1 --preset tiny --parser en.udpipe \
  --src train.en --tgt train.de --dev-src dev.en --dev-tgt dev.de --test-src test.en --test-tgt test.de
cat > experiment/config.toml << END
[training]
max_steps = ${STEPS:-1200}
validate_every = 400
save_every = 50  # the mean of checkpoints far apart would be worse than the last one
keep = 3
precision = "fp32"
END

say "4. Parse, learn a vocabulary, make records, train both models, translate, score"
make -j2 -C experiment BY=length:8,12,16

say "5. Look at translations, and translate a line of text, which is parsed on the way"
for line in 1 2 3; do
  for file in test.en test.de experiment/output/vanilla.1.txt experiment/output/pascal.1.txt; do
    printf '%-34s' "$file"
    sed -n "${line}p" "$file"
  done
done
echo "The old man who the child sees sleeps." | synmt translate -m experiment/models/pascal.1

say "6. $out/experiment/scores.txt says by how much they differ, in words near its end; look at its report.html, too"
