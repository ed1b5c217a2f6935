"""From records to a trained run directory."""
