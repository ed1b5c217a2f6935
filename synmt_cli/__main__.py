"""The program `synmt`, also as `python -m synmt_cli`."""

import signal


def main() -> None:
    """Runs `synmt` and ends the process. Ctrl-C is as quiet while it loads as later."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from synmt_cli import cli

    cli.main()


if __name__ == "__main__":
    main()
