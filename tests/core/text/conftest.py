import io

import pytest

from synmt_cli.core.text import parser_training
from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source


@pytest.fixture(scope="module")
def trained(tiny_treebank, tmp_path_factory):
    """A function that trains a tiny model and returns its path.

    tagger, parser: further options of these. words: word of the treebank -> what replaces it.
    """

    def trained(tagger, parser, words=None):
        text = tiny_treebank.decode()
        for word, other in (words or {}).items():
            text = text.replace(word, other)
        source = Source("x", io.BufferedReader(io.BytesIO(text.encode())))
        data = parser_training.treebank(conllu.read(source))
        options = {
            "tokenizer": "epochs=1;batch_size=10;segment_size=10",
            "tagger": f"iterations=1;guesser_enrich_dictionary=0;{tagger}",
            "parser": f"iterations=1;hidden_layer=10;structured_interval=0;{parser}",
        }
        model = parser_training.train(data, parser_training.Treebank(), options, lambda _: None)
        path = tmp_path_factory.mktemp("trained") / "x.udpipe"
        path.write_bytes(model.model)
        return str(path)

    return trained
