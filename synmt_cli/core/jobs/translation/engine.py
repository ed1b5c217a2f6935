"""The engine of a translation: torch, or CTranslate2 where the model and the search fit."""

import torch

from synmt_cli.core.decoding import ctranslate2_search
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.run import building
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.exported import ctranslate2_model, export
from synmt_cli.core.run.exported.ctranslate2_model import CTranslate2Model
from synmt_cli.errors import ConfigError, SynmtError, UsageError

TORCH, CTRANSLATE2, AUTO = "torch", "ctranslate2", "auto"
AS_THE_DEVICE = "auto"  # a precision: bf16 where a GPU has it, else fp32


def choose(
    wanted: str | None,
    runs: list[Run],
    precision: str | None,
    settings: SearchSettings,
    device: torch.device,
) -> tuple[str, str, str]:
    """The engine, its precision, and why it is that engine. Raises SynmtError.

    wanted: None is torch for run directories and CTranslate2 for what `export` wrote. precision:
    None is fp32, or the precision of an exported model.
    """
    if precision == AS_THE_DEVICE:
        precision = devices.own_precision(device)
    exported = [run for run in runs if run.is_exported]
    if wanted == TORCH and exported:
        folder = exported[0].folder
        raise ConfigError(f"{folder} was exported for CTranslate2; torch needs the run directory")
    reason = "engine torch"
    if wanted != TORCH and (wanted or exported):
        try:
            return CTRANSLATE2, fit(runs, precision, settings, device), "engine ctranslate2"
        except SynmtError as error:
            if wanted != AUTO or exported:
                raise
            reason = f"engine torch: {error}"
    precision = precision or "fp32"
    _refuse_unfit(precision, device)
    return TORCH, precision, reason


def _refuse_unfit(precision: str, device: torch.device) -> None:
    """Raises UsageError if torch does not have the precision on a device."""
    if precision == "int8" and device.type != "cpu":
        raise UsageError(f"--precision int8 is for --device cpu, not {device}")
    if precision in devices.HALF and device.type == "cpu":
        raise UsageError(f"--precision {precision} is for a GPU; on a CPU int8 is faster")


def fit(
    runs: list[Run], precision: str | None, settings: SearchSettings, device: torch.device
) -> str:
    """The precision in which CTranslate2 will compute. Raises SynmtError where it cannot."""
    ctranslate2_model.library()
    if len(runs) > 1:
        raise UsageError(f"CTranslate2 translates with one model, not an ensemble of {len(runs)}")
    run = runs[0]
    export.refuse_unfit(run)
    n_target = run.vocabularies().target.size
    if reason := ctranslate2_search.misfit(settings, n_target):
        raise UsageError(f"CTranslate2 cannot do {reason}")
    if precision is None:
        precision = export.stored_precision(run) if run.is_exported else "fp32"
        if ctranslate2_search.incapable(precision, device):
            precision = "fp32"
    if reason := ctranslate2_search.incapable(precision, device):
        raise UsageError(f"CTranslate2 cannot do {reason}")
    return precision


def model(run: Run, checkpoint: str, precision: str, device: torch.device) -> CTranslate2Model:
    """A run directory, or an exported model, as a model for CTranslate2. Raises SynmtError."""
    if run.is_exported:
        export.refuse_another_checkpoint(run, checkpoint)
        return export.read(run, precision, device)
    vocabularies = run.vocabularies()
    trained = building.load(run, checkpoint)
    return ctranslate2_model.of(trained, vocabularies, precision, device)
