"""The batches of the next updates travel to a GPU while it computes.

They are copied from pinned memory, on a stream of their own, by the thread that prepares them.
An update waits for its own batches alone, and only the device waits, not the host.
"""

from __future__ import annotations

import torch

from synmt_cli.core.training.updates import Update


class Transfer:
    """Brings updates to a device. On the CPU they stay where they are."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def send(self, update: Update) -> Update:
        """The update with its batches on the device, or on their way to it."""
        if self._stream is None:
            return self._moved(update)
        # Otherwise the thread that prepares batches would also use the first card.
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            return self._moved(update)._replace(arrival=self._stream.record_event())

    def receive(self, update: Update) -> Update:
        """The update, ready for what is computed from now on. One not sent before is sent now."""
        update = self._moved(update)
        if update.arrival is not None:
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(update.arrival)
            for batch, _ in update.batches:
                for tensor in batch.tensors():
                    tensor.record_stream(stream)  # its memory was taken for another stream
        return update

    def _moved(self, update: Update) -> Update:
        if self._device.type == "cpu":
            return update
        batches = [(batch.to(self._device), counts) for batch, counts in update.batches]
        return update._replace(batches=batches)
