#!/usr/bin/env bash
# Makes the scores from the translations in this folder:
#
#   bash docs/results/adapting/make.sh NEWS
#
# NEWS: a folder with newstest2013.{en,fr}.xz (WMT 2013), whose lines from 501 on are the test set.
set -euo pipefail
if [ $# -lt 1 ]; then
  sed -n "s/^#   bash/usage: bash/p" "$0" >&2
  exit 2
fi
news=$(realpath "$1") test=$(mktemp -d)
trap 'rm -r "$test"' EXIT
for side in en fr; do xz -dc "$news/newstest2013.$side.xz" | sed 1,500d > "$test/test.$side"; done
here=$(realpath "$(dirname "$0")")
cd "$test"
of() { for seed in 1 2 3; do systems+=("$1=$here/$1.$seed.txt.xz"); done; }
systems=()
for variant in vanilla rel struct-abs+struct-rel pascal dep; do of $variant; done
synmt score -j 0 -M bleu,chrf,ter --by length:10,20,30 --src test.en -o "$here/scores.txt" \
  test.fr "${systems[@]}"
systems=()
of debates # the plain models that were trained further, as they are
synmt score -j 0 -M bleu,chrf,ter -o "$here/debates.txt" test.fr "${systems[@]}"
