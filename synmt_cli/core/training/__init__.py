"""From records to a trained run directory.

One step, from the top down:

    session.Session.trainer   the data, the run directory, fresh weights
    loop.Trainer.events       updates until the end; reports, validations, checkpoints between them
    loop.Trainer._update      gradients of an update's batches, summed over the processes
    gradient.backward         one batch: forward pass, loss, gradient
    loop.Trainer._apply       clipping, learning rate, Adam's step
"""
