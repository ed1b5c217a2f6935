"""How a training fits a device: number formats, memory, batches on their way, compiled layers."""
