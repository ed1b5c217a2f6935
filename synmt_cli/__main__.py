"""The program `synmt`, also as `python -m synmt_cli`."""

import signal


def main() -> None:
    """Ends the process. Loading takes a moment in which Ctrl-C must be as quiet as later."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from synmt_cli import cli

    cli.main()


if __name__ == "__main__":
    main()
