"""The page of `synmt view --format html`: a figure for each segment, as they are read."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from synmt_cli.core.pictures.sentences import Picture, shown
from synmt_cli.core.pictures.trees.svg import Drawn

# No page fetches anything: everything that a browser may load stands in the page itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
CAPTION_LIMIT = 2000  # characters of a sentence


def asset(name: str) -> str:
    """The text of a file that stands next to this module, which goes into pages."""
    return (Path(__file__).parent / name).read_bytes().decode()


def head(title: str) -> str:
    """The page up to its first figure."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(shown(title, 120))}</title>\n<style>\n{asset('page.css')}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>{escape(shown(title, 120))}</h1>\n"
    )


def figure(one: Picture, drawings: Sequence[Drawn], number: int) -> str:
    """The figure of a segment: its drawings side by side where there is room."""
    name, text = escape(shown(one.id, 80)), escape(shown(one.text, CAPTION_LIMIT))
    svgs = "\n".join(
        '<div class="scroll" tabindex="0" role="group" aria-label="tree of '
        f'{name}">{drawn.document(f"{number}-{i}")}</div>'
        for i, drawn in enumerate(drawings)
    )
    caption = f"<figcaption><b>{name}</b> <bdi>{text}</bdi></figcaption>"
    return f'<figure>\n{caption}\n<div class="pair">\n{svgs}\n</div>\n</figure>\n'


def foot(n: int) -> str:
    """The end of the page. n: how many segments it shows."""
    nothing = '<p class="none">There are no segments to draw.</p>\n' if not n else ""
    return f"{nothing}</main>\n</body>\n</html>\n"
