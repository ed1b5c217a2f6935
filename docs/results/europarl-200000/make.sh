#!/usr/bin/env bash
# Makes the scores from the translations in this folder:
#
#   bash docs/results/europarl-200000/make.sh
#
# vanilla has one translation, and dep+rel two, so each of these is compared with it alone.
set -euo pipefail
cd "$(dirname "$0")"
others=../europarl-30000 # the same 1,000 sentences
synmt score -j 0 -M bleu,chrf,ter --by length:10,20,30,40 --by depth:3,5,7 --src $others/source.txt.xz \
  --src-trees $others/source.conllu.xz -o scores.txt $others/reference.txt.xz \
  vanilla=vanilla.1.txt.xz dep+rel.1=dep+rel.1.txt.xz dep+rel.2=dep+rel.2.txt.xz
