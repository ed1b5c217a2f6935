#!/usr/bin/env bash
# Makes the pictures of docs/gallery.md from the small files in docs/gallery/data:
#
#   make gallery
set -euo pipefail
cd "$(dirname "$0")/data"
synmt view --format svg --id 1 -o ../arcs.svg gold.conllu
synmt view --format svg --layout upright --id 1 -o ../upright.svg gold.conllu
synmt view --format svg --compare parse.conllu --id 2 -o ../compare.svg gold.conllu
synmt view --format svg --beside target.conllu --id 3 --width 1100 -o ../beside.svg gold.conllu
synmt plot curves -o ../curves.svg runs/vanilla.1 runs/vanilla.2 runs/pascal.1 runs/pascal.2
synmt plot scores --metric bleu -o ../scores.svg score.json
synmt plot attention --trees gold.conllu -o ../attention.svg attention.jsonl
synmt plot heads --looks up -o ../heads.svg heads.json.xz
synmt report --title "Does syntax help?" --score score.json --src test.en --ref test.de \
  --src-trees test.en.conllu -o ../report.html runs/*
