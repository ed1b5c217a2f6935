"""`python -m synmt_cli` is `synmt`."""

from synmt_cli.cli import main

main()
