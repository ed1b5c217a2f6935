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
cd "$(dirname "$0")"
systems=()
for variant in vanilla rel struct-abs+struct-rel; do
  for seed in 1 2 3; do systems+=("$variant=$variant.$seed.txt.xz"); done
done
synmt score -j 0 -M bleu,chrf,ter --by length:10,20,30 --src "$test/test.en" -o scores.txt \
  "$test/test.fr" "${systems[@]}"
