"""Named settings: sizes for one's own data, and `paper-*`, rows of the papers' tables.

`tiny` was chosen on Multi30k's validation set for what one core learns in an hour: small
batches, and normalisation before the sub-layers, which learns several times faster early on.

Bugliarello and Okazaki (2020), Tables 2-4: `paper-pascal-CORPUS`, and the baselines there,
`paper-{vanilla,tags,sisa,multitask}-CORPUS`. The paper prints lr and betas of PASCAL alone, and
searched a small grid for each system; its published scripts have lr 0.001 for the plain
Transformer, Adam's epsilon and the first learning rate. Baselines here have PASCAL's betas. The
32K-token batch is 16 devices times 2,048 tokens. Table 7, on NC11 with the settings of Table 2:
`paper-pascal-layer-{2,...,6}-CORPUS` (the paper's layer 1, that of Table 2, is layer 0 here), and
`paper-pascal-variance-{parent-only,4,9,16,25}-CORPUS`.

Xie et al. (2021), Table 2: `paper-gps-CORPUS`. Learning rate, betas and batch are not printed;
the data and the toolkit are PASCAL's, so these settings are, too, with betas of Vaswani et al.
Table 3, on NC11 De-En: `paper-gps-layer-{1,...,5,all}`; its layer 0 is `paper-gps-nc11-de-en`.

These papers use the model of the last update (`translate --checkpoint last`); `best` is ours.

Wang et al. (2019): `paper-structural-1` to `-9`, Table 1 (base), and Table 2 (big),
`paper-structural-big`, `-big-structural`, `-big-relative`, `-big-both`. The optimiser is not
printed; it is the one of their toolkit, THUMT. Positions are clipped to 16 in all models, as the
paper prints; a comment in THUMT, citing Shaw et al., has 8 for big models.

Omote et al. (2019): `paper-dep-{abs,rel,dep,both}`, Table 2, and Table 3,
`paper-dep-ablation-{kv,k,v,none}`. The learning rate is that of Vaswani et al. with 4,000
updates of warm-up; translate with --beam 1. Source and target have their own vocabularies.

Choshen and Abend (2021), Tables 1 and 7-9: `paper-trees-{vanilla,bitran,linearized,parent,gcn}`
and the ablations `paper-trees-gcn-{labels,gates}`; Tables 4-6,
`paper-trees-large-{vanilla,parent}`. Not printed: the width of the feed-forward layers (four times
d_model here), label smoothing and dropout (0.1), the schedule after the warm-up (inverse square
root). Norms are before each sub-layer in the authors' code. At most 40 target pieces: use `filter`.
"""

from typing import Any, Literal

Tables = dict[str, Any]
AUTO = "auto"  # one of SIZES, by the data and the device
SIZES = ("base", "small", "tiny")
# The least number of target tokens, EOS counted, of a corpus for `small` (on a GPU and on a
# processor) and for `base`; docs/decisions/0029-sizes-by-the-data.md says why.
FOR_SMALL, FOR_SMALL_ON_CPU, FOR_BASE = 1_000_000, 2_000_000, 5_000_000
MOST_PASSES = 100  # over a small corpus: more only learn it by heart

# As in Vaswani et al. (2017), without the peak learning rate; a toolkit's own values override it.
_ADAM: Tables = {
    "warmup": 4000,
    "initial_lr": 0.0,
    "betas": (0.9, 0.98),
    "eps": 1e-9,
    "clip_norm": 0.0,
    "label_smoothing": 0.1,
}
_FAIRSEQ = _ADAM | {"warmup": 8000, "initial_lr": 1e-7, "batch_tokens": 2048, "accumulate": 16}
# corpus: Adam's beta_2, h_Pascal, q (Table 2); whether the corpus is a small one.
_PASCAL = {
    "nc11-en-de": (0.997, 2, 0.4, True),
    "nc11-de-en": (0.997, 8, 0.0, True),
    "wmt18-en-tr": (0.98, 7, 0.3, True),
    "wmt16-en-de": (0.98, 5, 0.0, False),
    "wmt17-en-de": (0.997, 7, 0.3, False),
    "wat-en-ja": (0.997, 7, 0.0, False),
}
_BASELINES = ("tags", "sisa", "multitask")
_GPS = {"nc11-en-de": True, "nc11-de-en": True, "wmt16-en-de": False, "wmt17-en-de": False}
_LARGE = 10_000_000  # updates or tokens: another limit comes first


def _scale(small: bool, lr: float, beta2: float) -> Tables:
    """Dropout 0.3 and 20,000 updates for small corpora, 0.1 and 100,000 for large ones."""
    steps = 20_000 if small else 100_000
    training = {**_FAIRSEQ, "lr": lr, "betas": (0.9, beta2), "max_steps": steps}
    return {"model": {"dropout": 0.3 if small else 0.1}, "training": training}


def _pascal(corpus: str) -> dict[str, Tables]:
    beta2, heads, ignore, small = _PASCAL[corpus]
    own = _scale(small, 0.0007, beta2)
    return {
        f"paper-pascal-{corpus}": {
            "variant": "pascal",
            **own,
            "pascal": {"heads": heads, "ignore": ignore},
        },
        f"paper-vanilla-{corpus}": {"variant": "vanilla", **_scale(small, 0.001, beta2)},
        **{f"paper-{name}-{corpus}": {"variant": name, **own} for name in _BASELINES},
    }


def _pascal_ablation(corpus: str, name: str, **options: Any) -> dict[str, Tables]:
    """A row of Table 7: the model of Table 2 but for one option."""
    tables = _pascal(corpus)[f"paper-pascal-{corpus}"]
    return {f"paper-pascal-{name}-{corpus}": {**tables, "pascal": {**tables["pascal"], **options}}}


def _table_7(corpus: str) -> dict[str, Tables]:
    rows: dict[str, Tables] = {}
    for layer in range(2, 7):  # the paper counts from 1
        rows |= _pascal_ablation(corpus, f"layer-{layer}", layer=layer - 1)
    rows |= _pascal_ablation(corpus, "variance-parent-only", parent_only=True)
    for variance in (4, 9, 16, 25):
        rows |= _pascal_ablation(corpus, f"variance-{variance}", variance=float(variance))
    return rows


def _structural(variant: str, positions: str = "sinusoid", big: bool = False) -> Tables:
    """THUMT's base or big Transformer; rel in the encoder alone, as in all models of the paper."""
    model: Tables = {"tied": "none", "positions": positions}
    if big:
        model |= {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3}
    training = _ADAM | {
        "lr": 0.0005 if big else 0.0007,
        "batch_tokens": 4096,
        "max_steps": 300_000 if big else 100_000,
    }
    return {"variant": variant, "model": model, "training": training, "rel": {"stack": "encoder"}}


def _omote(variant: str, sentences: int, epochs: int, **more: Tables) -> Tables:
    training = _ADAM | {
        "lr": 512**-0.5 * 4000**-0.5,
        "batch_sentences": sentences,
        "batch_tokens": _LARGE,
        "max_epochs": epochs,
        "max_steps": _LARGE,
        "metric": "accuracy",
    }
    model = {"tied": "decoder", **more.pop("model", {})}
    return {"variant": variant, "model": model, "training": training, "rel": {"clip": 2}, **more}


def _ablation(keys: bool, values: bool) -> Tables:
    """Table 3: no absolute positions, as in Shaw et al."""
    return _omote(
        "dep",
        100,
        50,
        model={"positions": "none", "decoder_positions": "none"},
        dep={"keys": keys, "values": values},
    )


def _choshen(variant: str, large: bool = False, **more: Tables) -> Tables:
    d_model, layers = (512, 6) if large else (256, 4)
    model = {
        "d_model": d_model,
        "d_ff": 4 * d_model,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "norm": "pre",
        "tied": "none",
    }
    training = _ADAM | {
        "lr": 1e-4,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "batch_sentences": 128,
        "batch_tokens": _LARGE,
        "transition_weight": 1.0,  # transitions are tokens like all others
        "transition_smoothing": 0.1,
        "max_steps": 150_000 if large else 90_000,
    }
    return {"variant": variant, "model": model, "training": training, **more}


_PAPERS: dict[str, Tables] = {
    **{name: tables for corpus in _PASCAL for name, tables in _pascal(corpus).items()},
    **_table_7("nc11-en-de"),
    **_table_7("nc11-de-en"),
    **{
        f"paper-gps-{corpus}": {"variant": "gps", **_scale(small, 0.0007, 0.98)}
        for corpus, small in _GPS.items()
    },
    **{
        f"paper-gps-layer-{layer}": {
            "variant": "gps",
            **_scale(True, 0.0007, 0.98),
            "gps": {"layer": layer},
        }
        for layer in (1, 2, 3, 4, 5, "all")
    },
    "paper-structural-1": _structural("vanilla", "none"),
    "paper-structural-2": _structural("struct-abs", "none"),
    "paper-structural-3": _structural("struct-rel", "none"),
    "paper-structural-4": _structural("vanilla"),
    "paper-structural-5": _structural("struct-abs"),
    "paper-structural-6": _structural("struct-abs+struct-rel"),
    "paper-structural-7": _structural("rel"),
    "paper-structural-8": _structural("rel+struct-abs"),
    "paper-structural-9": _structural("rel+struct-abs+struct-rel"),
    "paper-structural-big": _structural("vanilla", big=True),
    "paper-structural-big-structural": _structural("struct-abs+struct-rel", big=True),
    "paper-structural-big-relative": _structural("rel", big=True),
    "paper-structural-big-both": _structural("rel+struct-abs+struct-rel", big=True),
    "paper-dep-abs": _omote("vanilla", 256, 30),
    "paper-dep-rel": _omote("rel", 256, 30),
    "paper-dep-dep": _omote("dep", 256, 30),
    "paper-dep-both": _omote("dep+rel", 256, 30),
    "paper-dep-ablation-kv": _ablation(True, True),
    "paper-dep-ablation-k": _ablation(True, False),
    "paper-dep-ablation-v": _ablation(False, True),
    "paper-dep-ablation-none": _ablation(False, False),
    **{
        f"paper-trees-{name}": _choshen(name)
        for name in ("vanilla", "bitran", "linearized", "parent", "gcn")
    },
    "paper-trees-gcn-labels": _choshen("gcn", gcn={"labels": False}),
    "paper-trees-gcn-gates": _choshen("gcn", gcn={"labels": False, "gates": False}),
    "paper-trees-large-vanilla": _choshen("vanilla", large=True),
    "paper-trees-large-parent": _choshen("parent", large=True),
}
PRESETS: dict[str, Tables] = {
    "tiny": {
        "model": {"d_model": 128, "d_ff": 256, "n_heads": 4, "dropout": 0.1, "norm": "pre"}
        | {"encoder_layers": 4, "decoder_layers": 4},
        "training": {"lr": 0.003, "warmup": 300, "batch_tokens": 1024, "max_steps": 12_000}
        | {"max_epochs": MOST_PASSES},
    },
    "small": {
        "model": {"d_model": 256, "d_ff": 1024, "n_heads": 4, "dropout": 0.3}
        | {"encoder_layers": 3, "decoder_layers": 3},
        "training": {"lr": 0.002, "warmup": 2000, "max_steps": 20_000, "max_epochs": MOST_PASSES},
    },
    "base": {"model": {}, "training": {}},
    **_PAPERS,
}


def by_data(n_tokens: int, device: str) -> tuple[Literal["tiny", "small", "base"], str]:
    """The preset for so many target tokens on a kind of device (`cpu`, `cuda`), and why.

    >>> by_data(480_000, "cpu")
    ('tiny', '480,000 target tokens are fewer than 2,000,000')
    """
    have = f"{n_tokens:,} target tokens are"
    is_cpu = device == "cpu"
    for_small = FOR_SMALL_ON_CPU if is_cpu else FOR_SMALL
    if n_tokens < for_small:
        return "tiny", f"{have} fewer than {for_small:,}"
    if is_cpu and n_tokens < FOR_BASE:
        why = "enough for small, which on a processor takes more than ten times as long as tiny"
        return "small", f"{have} {why}"
    if n_tokens < FOR_BASE:
        return "small", f"{have} fewer than {FOR_BASE:,}"
    if is_cpu:
        return "small", f"{have} enough for base, but on a processor it takes weeks"
    return "base", f"{have} {FOR_BASE:,} or more, and there is a GPU"
