"""The Makefile of an experiment: plain commands, each in a rule with the files that it reads.

`given/` links to the text as it was given, and to models to begin with; `text/` has the three sets,
`data/` trees and records, `runs/` the training runs, `models/` the means of their last checkpoints,
and `output/` the translations of the test set, with the trees of models that write them.
"""

from collections.abc import Iterable, Iterator

from synmt_cli.core.experiment.design import Design, TreesFrom
from synmt_cli.core.run.config import CHANGEABLE_IN_TRAINING
from synmt_cli.core.run.directory import OWN_VARIANTS
from synmt_cli.core.text.scripts import Writing
from synmt_cli.core.variants.own_file import VARIABLE

_HEAD = """\
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
# another folder with the old ones and the new one, and copy its Makefile, its *.udpipe and its
# variants.py here.
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
# METRICS and BY as synmt score takes them (-M, --by); make tries them before it trains.
METRICS := {metrics}
# The tokenizer of BLEU and RIBES in tuning and scores; config.toml has that of validations.
TOKENIZE := {tokenize}
BY := {by}

# Those that have rules below.
KNOWN := {variants}
$(foreach one,$(filter-out $(KNOWN),$(VARIANTS)),$(error VARIANTS: no rules here for $(one), \\
  but for $(KNOWN)))
$(if $(strip $(VARIANTS)),,$(error VARIANTS is empty))
$(if $(filter-out $(words $(sort $(VARIANTS))),$(words $(VARIANTS))),$(error VARIANTS \\
  names one twice))
$(if $(shell echo '$(SEEDS)' | grep -Ex ' *(0|[1-9][0-9]*)( +(0|[1-9][0-9]*))* *'),,$(error \\
  SEEDS: expected whole numbers with spaces between them, not $(SEEDS)))
$(if $(filter-out $(words $(sort $(SEEDS))),$(words $(SEEDS))),$(error SEEDS names one twice))

SEED := $(firstword $(SEEDS))
SYSTEMS := $(foreach variant,$(VARIANTS),$(foreach seed,$(SEEDS),$(variant).$(seed)))
# Those of the variants whose encoders read trees, and those that write them.
READERS := $(filter $(VARIANTS),{readers})
WRITERS := $(filter $(VARIANTS),{writers})
WRITTEN := $(foreach variant,$(WRITERS),$(foreach seed,$(SEEDS),$(variant).$(seed)))
# Whose length penalty is tuned: the first that writes no trees, for all of these; and each writer.
SHARED := $(firstword $(filter-out $(WRITERS),$(VARIANTS)))
TUNED := $(SHARED) $(WRITERS)
SEARCH := $(strip --beam $(BEAM) --lenpen $(LENPENS) $(addprefix --patience ,$(PATIENCE)))
# Where scores depend on TOKENIZE.
OF_WORDS := $(findstring bleu,$(METRICS))$(findstring ribes,$(METRICS))$(findstring rare:,$(BY))
SCORE := synmt score -j 0 -M '$(METRICS)' $(if $(OF_WORDS),--tokenize $(TOKENIZE)) \\
  --by $(BY) --src text/test.src

# Values as files, written when they change: what depends on one is then made again. (The mean of
# fewer seeds has another length penalty, too.) make -n writes nothing.
DRY := $(findstring n,$(firstword -$(MAKEFLAGS)))
$(if $(DRY),,$(shell mkdir -p data output))
# The settings of config.toml: its comments do not count.
SETTINGS = sed -E 's/[[:space:]]*\\#.*//; s/^[[:space:]]+//; /^$$/d' config.toml
CONFIG := $(shell $(SETTINGS) | cksum)
WATCHED := LIMITS PRESET{watched} CONFIG SEARCH TOKENIZE VARIANTS SEEDS METRICS BY SHARED READERS \\
  $(VARIANTS:%=OPTIONS_%)
CHANGED := $(foreach one,$(WATCHED),$(shell \\
  echo '$($(one))' | cmp -s - data/$(one) || \\
  ( $(if $(DRY),,echo '$($(one))' > data/$(one);) echo data/$(one) )))
.PHONY: $(if $(DRY),$(CHANGED))

all: scores.txt scores.json{judged_if} report.html
scores: scores.txt
report: report.html
data: {records}
train: $(SYSTEMS:%=runs/%.trained)
translate: $(SYSTEMS:%=output/%.txt)
"""
_FURTHER = """\
#
# Each training begins with the weights of a trained model, to which given/pretrained/VARIANT.SEED
# links. A further seed needs a link there, too.
"""
_OWN = """\
#
# variants.py is a copy of your file of variants. Change it, and models of its variants begin anew.
export {variable} := {file}
"""
_OF_VOCABULARY = """\
VOCABULARY := auto
# Share of characters that get a piece; the rarest go without. 0.9995 is for Chinese and Japanese.
COVERAGE := {coverage}
"""
_APART = """
# --- Text from which the {split_off} set is split off: without lines of the {given} set ---

text/apart/src text/apart/tgt &: given/src given/tgt text/{given}.src text/{given}.tgt
	mkdir -p text/apart
	synmt filter --from text --exclude-format text \\
		--exclude text/{given}.src --exclude text/{given}.tgt \\
		--tgt given/tgt --tgt-out text/apart/tgt -o text/apart/src given/src
"""
_SPLIT = """
# --- Sets that are split off, chosen by a hash of their lines; sets share no line ---

{files} &: \\
		{src} {tgt}
	synmt split {parts} --rest raw \\
		--out-template 'text/{{part}}.{{name}}' {src} {tgt}
"""
_FILTER = """
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
_LENGTHS = """\
# Lengths are in characters: {sides} no spaces between words. 100 words of
# English are about 600 characters, in Chinese about 170; the limits allow for that.
"""
_TREES = """
# --- Trees of the {side} ---

{targets}: data/%.{end}.conllu: text/%.{end}{files}
	synmt parse{options} -j $(PARSERS) -o $@ text/$*.{end}
"""
_VOCABULARY = """
# --- One vocabulary for both languages ---
{symbols}
spm.model: text/train.src text/train.tgt data/VOCABULARY data/COVERAGE{needs}
	synmt vocab train --size $(VOCABULARY) --character-coverage $(COVERAGE){options} \\
		-o $@ text/train.src text/train.tgt
"""
_TREE_SYMBOLS = """
data/transitions: data/train.tgt.conllu data/dev.tgt.conllu
	synmt linearize --format symbols --glue --on-nonprojective keep -o $@ \\
		data/train.tgt.conllu data/dev.tgt.conllu
"""
_TASK_SYMBOLS = """
data/brackets: data/train.src.conllu
	synmt featurize data/train.src.conllu | synmt multitask --format symbols -o $@
"""
_SYMBOLS = """
data/symbols: {files}
	LC_ALL=C sort -u {files} > $@
"""
_RECORDS = """
# --- Records: source, tree, pieces and target, one line each ---

data/train.jsonl data/dev.jsonl data/test.jsonl: data/%.jsonl: {source} text/%.tgt spm.model
	synmt featurize{options} --spm spm.model --tgt text/$*.tgt -o $@ {source_of}
"""
_TREE_RECORDS = """
data/train.trees.jsonl data/dev.trees.jsonl: data/%.trees.jsonl: \\
		{source} data/%.tgt.conllu spm.model
	synmt featurize{options} --spm spm.model --tgt-conllu data/$*.tgt.conllu \\
		--glue --multiword token --on-nonprojective keep -o $@ {source_of}
"""
_TASK_RECORDS = """
data/train.{scheme}.jsonl: data/train.jsonl spm.model
	synmt multitask --spm spm.model --scheme {scheme} -o $@ data/train.jsonl
"""
_TASK_DEV = """
data/dev.multitask.jsonl: data/dev.jsonl spm.model
	synmt multitask --spm spm.model --task translate -o $@ data/dev.jsonl
"""
_SCORABLE = """
# --- The reference against itself: what METRICS, TOKENIZE and BY get wrong ends make here ---

data/scorable: text/test.src text/test.tgt data/METRICS data/TOKENIZE data/BY | data/test.jsonl
	$(SCORE) -o $@ text/test.tgt text/test.tgt
"""
_TRAIN = """
# --- Trainings. % and $* stand for the seed ---

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
_TRAIN_ONE = """
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
_FORECAST = """
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
_TUNE = """
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
_TRANSLATE_ONE = """
$(SEEDS:%=output/{variant}.%.txt): output/{variant}.%.txt: \\
		models/{variant}.%/model.safetensors $(call tuning,$(SHARED)) \\
		data/test.jsonl data/SEEDS data/SHARED
	$(TRANSLATE) -m models/{variant}.$* $(call best,$(SHARED)) -o $@ data/test.jsonl 2>&1 | \\
		$(call named,{variant}.$*)
"""
_TRANSLATE_TREES = """
output/{variant}.%.txt output/{variant}.%.conllu: \\
		models/{variant}.%/model.safetensors $(call tuning,{variant}) \\
		data/test.jsonl data/SEEDS
	$(TRANSLATE) -m models/{variant}.$* $(call best,{variant}) \\
		--trees-out output/{variant}.$*.conllu -o output/{variant}.$*.txt data/test.jsonl 2>&1 | \\
		$(call named,{variant}.$*)
"""
_JUDGE = """
# --- The trees that models wrote, against those of the parser for the same text ---

# Trees of the kind that models learn: projective, and with multiword tokens as one word.
$(WRITTEN:%=output/%.parsed.conllu): output/%.parsed.conllu: output/%.txt tgt.udpipe
	synmt parse -m tgt.udpipe output/$*.txt | \\
		synmt linearize --glue --multiword token --on-nonprojective keep | \\
		synmt delinearize --format conllu -o $@

trees.txt: $(WRITTEN:%=output/%.conllu) $(WRITTEN:%=output/%.parsed.conllu) \\
		data/VARIANTS data/SEEDS Makefile
	( printf 'system\\tUAS\\tLAS\\n'; for system in $(WRITTEN); do \\
		synmt evaltree --format tsv output/$$system.parsed.conllu output/$$system.conllu | \\
		LC_ALL=C awk -v name=$$system '$$2 == "uas" { uas = $$5 } \\
			$$2 == "las" { printf "%s\\t%.2f\\t%.2f\\n", name, uas, $$5 }'; done ) | tee $@
"""
_READ = """
# --- What encoders do with the trees: the weight of syntax by layer, attention in some segments ---

output/awsl.json: $(READERS:%=models/%.$(SEED)/model.safetensors) data/dev.jsonl data/READERS \\
		data/SEEDS
	synmt analyze awsl $(READERS:%=-m models/%.$(SEED)) --format json -o $@ data/dev.jsonl

output/attention.jsonl: models/$(firstword $(READERS)).$(SEED)/model.safetensors data/test.jsonl \\
		data/READERS data/SEEDS
	head -n 20 data/test.jsonl | \\
		synmt analyze attention -m models/$(firstword $(READERS)).$(SEED) -o $@
"""
_TEST = """
# --- The answer ---

OUTPUTS = $(foreach system,$(SYSTEMS),$(basename $(system))=output/$(system).txt)

scores.json: $(SYSTEMS:%=output/%.txt) text/test.tgt text/test.src \\
		data/METRICS data/TOKENIZE data/BY data/VARIANTS Makefile
	$(SCORE) --format json -o $@ text/test.tgt $(OUTPUTS)

scores.txt: scores.json $(SYSTEMS:%=runs/%.trained)
	synmt score --from-report scores.json -o $@
	trends=$$(synmt info $(SYSTEMS:%=runs/%) | \\
		sed -n '/^file\\t/ {s///;h}; /^course\\.trend\\t/ {s//  /;H;x;s/\\n//;p}'); \\
	[ -z "$$trends" ] || printf '\\n%s\\n\\n%s\\n' \\
		'Trainings, on dev; while they improve, differences may change' "$$trends" >> $@
	cat $@

# The page needs two more packages: pip install 'synmt-cli[report]'.
report.html: scores.json{files} \\
		$(foreach one,$(TUNED),$(call tuning,$(one)))
	synmt report --score scores.json --src text/test.src --ref text/test.tgt{options} \\
		--title "$${PWD##*/}" \\
		$(foreach one,$(TUNED),$(addprefix --tuned $(one)=,$(call tuning,$(one)))) \\
		-o $@ $(SYSTEMS:%=runs/%) || [ $$? -eq 69 ]
"""


def makefile(design: Design, n_pairs: int) -> str:
    """The text of the Makefile. n_pairs: of the text to train on, as it was given."""
    return "".join(_parts(design, n_pairs))


def _parts(design: Design, n_pairs: int) -> Iterator[str]:
    names = (name for variant in design.variants for name in design.records(variant))
    records = dict.fromkeys([*names, "test"])
    has_own = any(map(design.has_own, design.variants))
    lenpens, patience = ("0.2:3.0", " 1") if design.writers else ("0.2:1.6", "")
    yield _HEAD.format(
        variants=" ".join(design.variants),
        seeds=" ".join(map(str, design.seeds)),
        preset=design.preset,
        lengths=_LENGTHS.format(sides=design.unspaced) if design.unspaced else "",
        limits=_limits(design),
        own=_OWN.format(variable=VARIABLE, file=OWN_VARIANTS) if has_own else "",
        further=_FURTHER if design.pretrained else "",
        vocabulary="" if design.pretrained else _OF_VOCABULARY.format(coverage=_coverage(design)),
        watched="" if design.pretrained else " VOCABULARY COVERAGE",
        lenpens=lenpens,
        patience=patience,
        metrics="bleu,chrf" if design.tgt_writing else "bleu,chrf,ter",
        tokenize=design.tokenize,
        by=_buckets(design.src_writing),
        judged=" trees.txt" if _judges(design) else "",
        judged_if=" $(if $(WRITERS),trees.txt)" if _judges(design) else "",
        readers=" ".join(design.readers),
        writers=" ".join(design.writers),
        records=" ".join(f"data/{name}.jsonl" for name in records),
    )
    yield from _sets(design, n_pairs)
    yield from _trees(design)
    if not design.pretrained:  # else it is a link to that of the pretrained models
        yield from _vocabulary(design)
    yield from _records(design)
    yield from _trainings(design)
    yield _TUNE
    for variant in design.variants:
        rule = _TRANSLATE_TREES if variant in design.writers else _TRANSLATE_ONE
        yield rule.format(variant=variant)
    shown = []  # what the page shows: the list that needs it, the option, the file
    if design.source_trees:
        shown.append(("", "--src-trees", "data/test.src.conllu"))
    if design.readers:
        yield _READ
        shown.append(("READERS", "--awsl", "output/awsl.json"))
        shown.append(("READERS", "--attention", "output/attention.jsonl"))
    if _judges(design):
        yield _JUDGE
    if design.writers:
        shown.append(("WRITERS", "--tgt-trees", "output/$(firstword $(WRITERS)).$(SEED).conllu"))
    files = [_if(needs, file) for needs, _, file in shown]
    options = [_if(needs, f"{option} {file}") for needs, option, file in shown]
    yield _TEST.replace("{files}", _lines(files)).replace("{options}", _lines(options))


def _judges(design: Design) -> bool:
    """Whether there is a parser for the text that models write with its tree."""
    return bool(design.writers) and design.tgt.parser is not None


def _if(name: str, text: str) -> str:
    """The text, where the variable of this name is not empty; always, if there is no name."""
    return f"$(if $({name}),{text})" if name else text


def _lines(words: Iterable[str]) -> str:
    """Words that go on in the next lines of a rule, one in each."""
    return "".join(f" \\\n\t\t{word}" for word in words)


def _sets(design: Design, n_pairs: int) -> Iterator[str]:
    raw = "given/"
    if len(design.split_off) == 1:
        [split_off] = design.split_off
        yield _APART.format(split_off=split_off, given="test" if split_off == "dev" else "dev")
        raw = "text/apart/"
    if design.split_off:
        names = ("raw", *design.split_off)
        files = " ".join(f"text/{name}.{side}" for name in names for side in ("src", "tgt"))
        size = design.n_held_out(n_pairs)
        parts = " ".join(f"--part {name}={size}" for name in design.split_off)
        yield _SPLIT.format(files=files, parts=parts, src=f"{raw}src", tgt=f"{raw}tgt")
        raw = "text/raw."
    yield _FILTER.format(src=f"{raw}src", tgt=f"{raw}tgt")


def _trainings(design: Design) -> Iterator[str]:
    yield _SCORABLE
    yield _TRAIN.format(changeable="|".join(CHANGEABLE_IN_TRAINING))
    for variant in design.variants:
        train, dev = design.records(variant)
        files, options = "", ""
        if design.plans[variant].source_trees and design.src.parser is not None:
            files, options = " src.udpipe", " --parser src.udpipe"
        if design.has_own(variant):
            files += f" {OWN_VARIANTS}"
        if design.pretrained:
            begun = f"given/pretrained/{variant}.%"  # a link, which may come to link elsewhere
            files += f" \\\n\t\t{begun} {begun}/model.safetensors"
            options += f" --pretrained given/pretrained/{variant}.$*"
        yield _TRAIN_ONE.format(variant=variant, train=train, dev=dev, files=files, options=options)
    yield _FORECAST


def _limits(design: Design) -> str:
    """Options of synmt filter: what is too long. A dense character counts like three others."""
    if not design.unspaced:
        return "--max-len 100 --ratio 9"
    writings = design.src_writing, design.tgt_writing
    n_dense = sum(one is not None and one.is_dense for one in writings)
    longest = 200 if n_dense == 2 else 600  # characters of about 100 words
    return f"--unit chars --max-len {longest} --ratio {20 if n_dense == 1 else 9}"


def _coverage(design: Design) -> str:
    """Not all of thousands of characters, of which many are seen once or twice."""
    writings = design.src_writing, design.tgt_writing
    return "0.9995" if any(one is not None and one.is_dense for one in writings) else "1"


def _buckets(writing: Writing | None) -> str:
    """The SPEC of synmt score --by, for sources of this writing."""
    if writing is None:
        return "length:10,20,30,40"
    return "chars:20,40,60,80" if writing.is_dense else "chars:50,100,150,200"


def _trees(design: Design) -> Iterator[str]:
    if design.source_trees:
        yield _parsing("sources", "src", ("train", "dev", "test"), design.src)
    if design.writers:
        yield _parsing("targets", "tgt", ("train", "dev"), design.tgt)


def _vocabulary(design: Design) -> Iterator[str]:
    symbols, files = "", []
    if design.writers:
        symbols += _TREE_SYMBOLS
        files.append("data/transitions")
    if design.schemes:
        symbols += _TASK_SYMBOLS
        files.append("data/brackets")
    if files:
        symbols += _SYMBOLS.format(files=" ".join(files))
    yield _VOCABULARY.format(
        symbols=symbols,
        needs=" data/symbols" if files else "",
        options=" --symbols data/symbols" if files else "",
    )


def _parsing(side: str, end: str, sets: Iterable[str], trees: TreesFrom) -> str:
    """The rule for the trees of some sets."""
    given = {} if trees.parser is None else {"-m": f"{end}.udpipe"}
    given |= {} if trees.known is None else {"--known": f"given/{end}.conllu"}
    return _TREES.format(
        side=side,
        end=end,
        targets=" ".join(f"data/{name}.{end}.conllu" for name in sets),
        files="".join(f" {file}" for file in given.values()),
        options="".join(f" {option} {file}" for option, file in given.items()),
    )


def _records(design: Design) -> Iterator[str]:
    source = {
        "source": "data/%.src.conllu" if design.source_trees else "text/%.src",
        "source_of": "data/$*.src.conllu" if design.source_trees else "text/$*.src",
        "options": "" if design.source_trees else " --from text",
    }
    yield _RECORDS.format(**source)
    if design.writers:
        yield _TREE_RECORDS.format(**source)
    for scheme in design.schemes:
        yield _TASK_RECORDS.format(scheme=scheme)
        if scheme == "multitask":
            yield _TASK_DEV
