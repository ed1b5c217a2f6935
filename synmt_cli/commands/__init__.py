"""One file for each subcommand: options in, a call to core, records out."""
