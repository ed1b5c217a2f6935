"""The rules of an experiment's Makefile, as texts that makefile.py fills in and puts together.

`{name}` is what depends on the experiment. Where there is such a name, but for TEST, braces of the
Makefile itself are doubled.
"""

HEAD = """\
# Does syntax help on this text? Written by `synmt init`, and yours to change.
#
#   make -j2         everything, two trainings at a time; results: scores.txt{judged} report.html
#                    (on one GPU: make, since trainings take turns on it)
#   make data        trees, vocabulary and records
#   make forecast    how long the trainings will take, from a few updates of each variant
#   make train       the training runs, runs/VARIANT.SEED, each with its log, runs/VARIANT.SEED.log
#   make -n          the commands that would run
#
# An interrupted make resumes where it stopped, and so does each training. What depends on a newer
# file is made again, but no model of the same data and settings is trained again: only one whose
# records or settings have other content is moved to runs/old first. Ctrl-C ends everything; a
# signal to make alone leaves its trainings running.

$(if $(filter grouped-target,$(.FEATURES)),,$(error this needs GNU make 4.3 or newer))
# A link counts as changed where it links to another file, even an older one.
MAKEFLAGS += -L
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: all data train translate scores report

# --- What to compare; change it as you like ---
#
# make then makes what is missing, such as the models of a further seed, tunes, translates and
# scores again; other models stay. A variant can be left out. To add one, let `synmt init` write
# another folder with the old ones and the new one, copy the settings that you changed here into
# its Makefile, and then copy that Makefile, its *.udpipe and its variants.py here (cp -P, since
# some are links).
# The first variant that reads or writes trees changes the records or the vocabulary, and thus all
# models.
{further}{own}
VARIANTS := {variants}
SEEDS := {seeds}
PRESET := {preset}
# Further options of `synmt train` for one variant: OPTIONS_pascal := --set pascal.heads=1
# Longer pairs, and those with sides of too different length, are not trained on (synmt filter).
{lengths}LIMITS := {limits}
{vocabulary}# Processes that parse, since all else waits for the trees: 0 is one for each core.
PARSERS := 0
# Threads of each training, tuning and translation.
THREADS := 1
# At least 2: the length penalty is tuned for it, by these values on dev.
BEAM := 5
LENPENS := {lenpens}
# Empty: search ends when no translation can be better. 1: it ends as fairseq's does, which is much
# faster where models write trees, and needs greater penalties: 0.2:3.0 instead of 0.2:1.6.
PATIENCE :={patience}
# METRICS and BY as synmt score takes them (-M, --by); make tries them before it trains. If a file
# that BY names changes, the test set is scored again, unless its name has spaces.
METRICS := {metrics}
# The tokenizer of BLEU and RIBES in tuning and scores; config.toml has that of validations.
TOKENIZE := {tokenize}
BY := {by}

# The variants that have rules below.
KNOWN := {variants}
$(foreach one,$(filter-out $(KNOWN),$(VARIANTS)),$(error VARIANTS: no rules here for $(one), \\
  but for $(KNOWN); the comment above VARIANTS says how to add it))
$(if $(strip $(VARIANTS)),,$(error VARIANTS is empty))
$(if $(filter-out $(words $(sort $(VARIANTS))),$(words $(VARIANTS))),$(error VARIANTS \\
  names one twice))
$(if $(shell echo '$(SEEDS)' | grep -Ex ' *(0|[1-9][0-9]*)( +(0|[1-9][0-9]*))* *'),,$(error \\
  SEEDS: expected whole numbers with spaces between them, not $(SEEDS)))
$(if $(filter-out $(words $(sort $(SEEDS))),$(words $(SEEDS))),$(error SEEDS names one twice))

SEED := $(firstword $(SEEDS))
SYSTEMS := $(foreach variant,$(VARIANTS),$(foreach seed,$(SEEDS),$(variant).$(seed)))
# The variants whose encoders read trees, and those that write trees.
READERS := $(filter $(VARIANTS),{readers})
WRITERS := $(filter $(VARIANTS),{writers})
WRITTEN := $(foreach variant,$(WRITERS),$(foreach seed,$(SEEDS),$(variant).$(seed)))
# The variants whose length penalty is tuned: the first that writes no trees, for all that write
# none; and each one that writes trees.
SHARED := $(firstword $(filter-out $(WRITERS),$(VARIANTS)))
TUNED := $(SHARED) $(WRITERS)
SEARCH := $(strip --beam $(BEAM) --lenpen $(LENPENS) $(addprefix --patience ,$(PATIENCE)))
# Not empty if scores depend on TOKENIZE.
OF_WORDS := $(findstring bleu,$(METRICS))$(findstring ribes,$(METRICS))$(findstring rare:,$(BY))
PLAIN_BY := $(subst ",,$(subst ',,$(BY)))
SCORE := synmt score -j 0 -M '$(METRICS)' $(if $(OF_WORDS),--tokenize $(TOKENIZE)) \\
  $(if $(strip $(BY)),--by $(BY)) \\
  $(if $(filter length% chars% rare:%,$(PLAIN_BY)),--src text/test.src)
FILES_OF_BY := $(wildcard $(foreach kind,rare labels,\\
  $(patsubst $(kind):%,%,$(filter $(kind):%,$(PLAIN_BY)))))

# Values as files, written when they change: what depends on one is then made again. (The mean of
# fewer seeds has another length penalty, too.) make -n writes nothing.
DRY := $(findstring n,$(firstword -$(MAKEFLAGS)))
$(if $(DRY),,$(shell mkdir -p data output))
# The settings of config.toml: its comments do not count.
SETTINGS = sed -E 's/[[:space:]]*\\#.*//; s/^[[:space:]]+//; /^$$/d' config.toml
CONFIG := $(shell $(SETTINGS) | cksum)
WATCHED := LIMITS PRESET{watched} CONFIG SEARCH TOKENIZE VARIANTS SEEDS METRICS BY SHARED READERS \\
  $(VARIANTS:%=OPTIONS_%)
quoted = '$(subst ','\\'',$($(1)))'
CHANGED := $(foreach one,$(WATCHED),$(shell \\
  echo $(call quoted,$(one)) | cmp -s - data/$(one) || \\
  ( $(if $(DRY),,echo $(call quoted,$(one)) > data/$(one);) echo data/$(one) )))
.PHONY: $(if $(DRY),$(CHANGED))

all: scores.txt scores.json{judged_if} report.html
scores: scores.txt
report: report.html
data: {records}
train: $(SYSTEMS:%=runs/%.trained)
translate: $(SYSTEMS:%=output/%.txt)
"""
FURTHER = """\
#
# Each training begins with the weights of a trained model, to which given/pretrained/VARIANT.SEED
# links. A further seed needs a link there, too.
"""
OWN = """\
#
# variants.py is a copy of your file of variants. Change it, and models of its variants begin anew.
export {variable} := {file}
"""
OF_VOCABULARY = """\
VOCABULARY := auto
# Share of characters that get a piece; the rarest go without. 0.9995 is for Chinese and Japanese.
COVERAGE := {coverage}
"""
APART = """
# --- Text from which the {split_off} set is split off: without lines of the {given} set ---

text/apart/src text/apart/tgt &: given/src given/tgt text/{given}.src text/{given}.tgt
	mkdir -p text/apart
	synmt filter --from text --exclude-format text \\
		--exclude text/{given}.src --exclude text/{given}.tgt \\
		--tgt given/tgt --tgt-out text/apart/tgt -o text/apart/src given/src
"""
SPLIT = """
# --- Sets that are split off, chosen by a hash of their lines; sets share no line ---

{files} &: \\
		{src} {tgt}
	synmt split {parts} --rest raw \\
		--out-template 'text/{{part}}.{{name}}' {src} {tgt}
"""
FILTER = """
# --- Training text: without lines of the other sets, repeated pairs, and pairs beyond LIMITS ---

text/train.src text/train.tgt &: {src} {tgt} \\
		text/dev.src text/dev.tgt text/test.src text/test.tgt data/LIMITS
	synmt check config.toml # now rather than after all parsing
	synmt check --from text --parallel {src} {tgt}
	synmt check --from text --parallel text/dev.src text/dev.tgt
	synmt check --from text --parallel text/test.src text/test.tgt
	synmt filter --from text $(LIMITS) \\
		--dedup pair --exclude-format text \\
		--exclude text/dev.src --exclude text/dev.tgt \\
		--exclude text/test.src --exclude text/test.tgt \\
		--tgt {tgt} --tgt-out text/train.tgt -o text/train.src {src}
"""
LENGTHS = """\
# Lengths are in characters: {sides} no spaces between words. 100 words of
# English are about 600 characters, in Chinese about 170; the limits allow for that.
"""
TREES = """
# --- Trees of the {side} ---

{targets}: data/%.{end}.conllu: text/%.{end}{files}
	synmt parse{options} -j $(PARSERS) -o $@ text/$*.{end}
"""
VOCABULARY = """
# --- One vocabulary for both languages ---
{symbols}
spm.model: text/train.src text/train.tgt data/VOCABULARY data/COVERAGE{needs}
	synmt vocab train --size $(VOCABULARY) --character-coverage $(COVERAGE){options} \\
		-o $@ text/train.src text/train.tgt
"""
TREE_SYMBOLS = """
data/transitions: data/train.tgt.conllu data/dev.tgt.conllu
	synmt linearize --format symbols --glue --on-nonprojective keep -o $@ \\
		data/train.tgt.conllu data/dev.tgt.conllu
"""
TASK_SYMBOLS = """
data/brackets: data/train.src.conllu
	synmt featurize data/train.src.conllu | synmt multitask --format symbols -o $@
"""
SYMBOLS = """
data/symbols: {files}
	LC_ALL=C sort -u {files} > $@.new
	mv $@.new $@
"""
RECORDS = """
# --- Records: source, tree, pieces and target, one line each ---

data/train.jsonl data/dev.jsonl data/test.jsonl: data/%.jsonl: {source} text/%.tgt spm.model
	synmt featurize{options} --spm spm.model --tgt text/$*.tgt -o $@ {source_of}
"""
TREE_RECORDS = """
data/train.trees.jsonl data/dev.trees.jsonl: data/%.trees.jsonl: \\
		{source} data/%.tgt.conllu spm.model
	synmt featurize{options} --spm spm.model --tgt-conllu data/$*.tgt.conllu \\
		--glue --multiword token --on-nonprojective keep -o $@ {source_of}
"""
TASK_RECORDS = """
data/train.{scheme}.jsonl: data/train.jsonl spm.model
	synmt multitask --spm spm.model --scheme {scheme} -o $@ data/train.jsonl
"""
TASK_DEV = """
data/dev.multitask.jsonl: data/dev.jsonl spm.model
	synmt multitask --spm spm.model --task translate -o $@ data/dev.jsonl
"""
SCORABLE = """
# --- The reference against itself: what METRICS, TOKENIZE and BY get wrong ends make here ---

data/scorable: text/test.src text/test.tgt data/METRICS data/TOKENIZE data/BY $(FILES_OF_BY) \\
		| data/test.jsonl
	$(SCORE) -o $@ text/test.tgt text/test.tgt
"""
TRAIN = """
# --- Trainings. % and $* stand for the seed ---

# Where the folder of a model was deleted, it is trained again.
.PHONY: $(foreach one,$(SYSTEMS),$(if $(wildcard runs/$(one)/.),,runs/$(one).trained))
TRAIN := synmt train --preset $(PRESET) --config config.toml --threads $(THREADS) --spm spm.model
# $(call named,RUN): names it in each line, since several of them may run at a time. Like tee -i, it
# outlives Ctrl-C, after which training says that it saved.
named = (trap '' INT; exec sed -uE 's/^synmt (train|average|tune|translate):/$(1):/')
# What a model is made of: checksums, and settings without those with which a training may go on.
CHANGEABLE := {changeable}
inputs = cksum $(filter-out data/CONFIG $(@:runs/%.trained=given/pretrained/%),$^); \\
  $(SETTINGS) | sed -E '/^(training\\.)?($(CHANGEABLE))[[:space:]]*=/d'
# $(call aside,RUN): a model of other inputs makes way, and one of these comes back. Files that are
# only newer do not count.
aside = synmt check config.toml; mkdir -p runs; {{ $(inputs); }} > $(1).inputs.new; \\
  if [ -e $(1)/config.toml ] && ! cmp -s $(1).inputs.new $(1).inputs; then \\
    old=runs/old/$(notdir $(1)).$$(date +%Y%m%d-%H%M%S).$$$$; mkdir -p runs/old; \\
    [ ! -e $(1).inputs ] || mv $(1).inputs $$old.inputs; mv $(1) $$old; fi; \\
  for old in runs/old/$(notdir $(1)).*.inputs; do \\
    if [ ! -e $(1) ] && cmp -s $(1).inputs.new $$old; then \\
      [ ! -d $${{old%.inputs}} ] || mv $${{old%.inputs}} $(1); rm $$old; fi; done; \\
  mv $(1).inputs.new $(1).inputs
"""
TRAIN_ONE = """
NEEDS_{variant} := data/{train}.jsonl data/{dev}.jsonl spm.model data/CONFIG data/PRESET \\
  data/OPTIONS_{variant}{files}
TRAIN_{variant} = $(TRAIN) --variant {variant} --seed $*{options} $(OPTIONS_{variant}) \\
  --train data/{train}.jsonl --dev data/{dev}.jsonl
$(SEEDS:%=runs/{variant}.%.trained): runs/{variant}.%.trained: $(NEEDS_{variant}) \\
		| config.toml data/scorable
	@$(call aside,runs/{variant}.$*)
	$(TRAIN_{variant}) --run runs/{variant}.$* 2>&1 | \\
		tee -ai runs/{variant}.$*.log | $(call named,{variant}.$*)
	touch -r runs/{variant}.$*.inputs $@ # the time stamp of its inputs: later changes count
data/{variant}.$(SEED).forecast: data/{variant}.%.forecast: $(NEEDS_{variant}) | config.toml
	$(TRAIN_{variant}) --dry-run 2>&1 > $@ | $(call named,{variant})
"""
FORECAST = """
# --- How long the trainings will take, on this machine and with its other work ---

FORECASTS := $(VARIANTS:%=data/%.$(SEED).forecast)
AGAIN := $(MAKE) # by another name, or make -n would run what has it
# $(call left,VARIANT): how many of its trainings make would begin or go on with.
left = $$(grep -cF -e '--run runs/$(1).' <<< "$$todo" || true)

.PHONY: forecast $(FORECASTS)
forecast: $(FORECASTS)
	@todo=$$($(AGAIN) -n train 2> /dev/null); \\
	{ $(foreach one,$(VARIANTS),printf 'of\\t%s\\t%s\\n' $(one) "$(call left,$(one))"; \\
		cat data/$(one).$(SEED).forecast;) } | LC_ALL=C awk -F '\\t' ' \\
		BEGIN { row = "%-24s %13s  %s\\n"; printf row, "variant", "left to train", "each takes" } \\
		$$1 == "of" { variant = $$2; left = $$3 } \\
		$$1 == "updates" { updates = $$2 } \\
		$$1 == "seconds per update" { seconds += left * updates * $$2; all += left } \\
		$$1 == "time without validations" { printf row, variant, left, $$2 } \\
		END { printf row, "all", all, sprintf("%.1f h, one after another", seconds / 3600) }'
	@echo 'Validations, tuning and translations come on top; patience may end a training earlier.'
"""
TUNE = """
# --- The models that translate: the mean of the checkpoints that a training has kept ---

models/%/model.safetensors: runs/%.trained
	rm -rf models/$*
	mkdir -p models
	synmt average -m runs/$* -o models/$* 2>&1 | $(call named,$*)

# --- The length penalty that is best on dev by the mean over seeds ---

# $(call tuning,VARIANT): the reports of its seeds.
tuning = $(SEEDS:%=output/$(1).%.lenpen.json)

$(foreach one,$(TUNED),$(call tuning,$(one))): output/%.lenpen.json: \\
		models/%/model.safetensors data/dev.jsonl data/SEARCH data/TOKENIZE
	synmt tune -m models/$* $(SEARCH) --threads $(THREADS) --tokenize $(TOKENIZE) \\
		--format json -o $@ data/dev.jsonl 2>&1 | $(call named,$*)

# --- Translations of the test set ---

TRANSLATE := synmt translate --threads $(THREADS)
# $(call best,VARIANT): the options for a search with its length penalty.
best = $(addprefix --tuned ,$(call tuning,$(1)))
"""
TRANSLATE_ONE = """
$(SEEDS:%=output/{variant}.%.txt): output/{variant}.%.txt: \\
		models/{variant}.%/model.safetensors $(call tuning,$(SHARED)) \\
		data/test.jsonl data/SEEDS data/SHARED
	$(TRANSLATE) -m models/{variant}.$* $(call best,$(SHARED)) -o $@ data/test.jsonl 2>&1 | \\
		$(call named,{variant}.$*)
"""
TRANSLATE_TREES = """
output/{variant}.%.txt output/{variant}.%.conllu: \\
		models/{variant}.%/model.safetensors $(call tuning,{variant}) \\
		data/test.jsonl data/SEEDS
	$(TRANSLATE) -m models/{variant}.$* $(call best,{variant}) \\
		--trees-out output/{variant}.$*.conllu -o output/{variant}.$*.txt data/test.jsonl 2>&1 | \\
		$(call named,{variant}.$*)
"""
READ = """
# --- What encoders do with the trees: the weight of syntax by layer, attention in some segments ---

output/awsl.json: $(READERS:%=models/%.$(SEED)/model.safetensors) data/dev.jsonl data/READERS \\
		data/SEEDS
	synmt analyze awsl $(READERS:%=-m models/%.$(SEED)) --format json -o $@ data/dev.jsonl

output/attention.jsonl: models/$(firstword $(READERS)).$(SEED)/model.safetensors data/test.jsonl \\
		data/READERS data/SEEDS
	head -n 20 data/test.jsonl | \\
		synmt analyze attention -m models/$(firstword $(READERS)).$(SEED) -o $@
"""
JUDGE = """
# --- The trees that models wrote, against those of the parser for the same text ---

# Trees of the kind that models learn: projective, and with multiword tokens as one word.
$(WRITTEN:%=output/%.parsed.conllu): output/%.parsed.conllu: output/%.txt tgt.udpipe
	synmt parse -m tgt.udpipe output/$*.txt | \\
		synmt linearize --glue --multiword token --on-nonprojective keep | \\
		synmt delinearize --format conllu -o $@.new
	mv $@.new $@

trees.txt: $(WRITTEN:%=output/%.conllu) $(WRITTEN:%=output/%.parsed.conllu) \\
		data/VARIANTS data/SEEDS Makefile
	( printf 'system\\tUAS\\tLAS\\n'; for system in $(WRITTEN); do \\
		synmt evaltree --format tsv output/$$system.parsed.conllu output/$$system.conllu | \\
		LC_ALL=C awk -v name=$$system '$$2 == "uas" { uas = $$5 } \\
			$$2 == "las" { printf "%s\\t%.2f\\t%.2f\\n", name, uas, $$5 }'; done ) > $@.new
	mv $@.new $@
	cat $@
"""
TEST = """
# --- The answer ---

OUTPUTS = $(foreach system,$(SYSTEMS),$(basename $(system))=output/$(system).txt)

scores.json: $(SYSTEMS:%=output/%.txt) text/test.tgt text/test.src \\
		data/METRICS data/TOKENIZE data/BY data/VARIANTS $(FILES_OF_BY) Makefile
	$(SCORE) --format json -o $@ text/test.tgt $(OUTPUTS)

scores.txt: scores.json $(SYSTEMS:%=runs/%.trained)
	synmt score --from-report scores.json -o $@.new
	trends=$$(synmt info $(SYSTEMS:%=runs/%) | \\
		sed -n '/^file\\t/ {s///;h}; /^course\\.trend\\t/ {s//  /;H;x;s/\\n//;p}'); \\
	[ -z "$$trends" ] || printf '\\n%s\\n\\n%s\\n' \\
		'Trainings, on dev; while they improve, differences may change' "$$trends" >> $@.new
	mv $@.new $@
	cat $@

# The page needs two more packages: pip install 'synmt-cli[report]'.
report.html: scores.json{files} \\
		$(foreach one,$(TUNED),$(call tuning,$(one)))
	synmt report --score scores.json --src text/test.src --ref text/test.tgt{options} \\
		--title "$${PWD##*/}" \\
		$(foreach one,$(TUNED),$(addprefix --tuned $(one)=,$(call tuning,$(one)))) \\
		-o $@ $(SYSTEMS:%=runs/%) || [ $$? -eq 69 ]
"""
