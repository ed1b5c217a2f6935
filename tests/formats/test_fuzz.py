"""Mutated inputs end in a right result or in one clear line, never in another exception."""

import io

import pytest
from support.mutations import JSON_PIECES, PIECES, ROUNDS, mutations, share_refused

from synmt_cli.core.jobs.cutting import cut_by_line
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu, record
from synmt_cli.io.reading import Source

CONLLU = """# sent_id = 1.1
# text = Das ist zum Lachen.\u00a0
# synmt_line = 1
1\tDas\tder\tPRON\tPDS\tCase=Nom\t5\tnsubj\t_\tTokenRange=0:3
2\tist\tsein\tAUX\tVAFIN\t_\t5\tcop\t_\tTokenRange=4:7
3-4\tzum\t_\t_\t_\t_\t_\t_\t_\tTokenRange=8:11
3\tzu\tzu\tADP\tAPPR\t_\t5\tcase\t_\t_
4\tdem\tder\tDET\tART\t_\t5\tdet\t_\t_
4.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
5\tLachen\tLachen\tNOUN\tNN\t_\t0\troot\t_\tSpaceAfter=No|TokenRange=12:18
6\t.\t.\tPUNCT\t$.\t_\t5\tpunct\t_\tSpacesAfter=\\s\\s|TokenRange=18:19

# sent_id = 1.2
# synmt_line = 1
1\tJa\tja\tINTJ\t_\t_\t0\troot\t_\t_

# sent_id = 2
# text = 😀 é
1\t😀\t_\tSYM\t_\t_\t2\tdep\t_\t_
2\té\t_\tX\t_\t_\t0\troot\t_\t_

""".encode()

MANY = max(ROUNDS, 2000)  # for input that is read in a fraction of a millisecond


@pytest.fixture(scope="module")
def featurizer():
    model = train(["das ist zum lachen", "ja , das ist es"] * 9, VocabularySettings(24))
    return Featurizer(Vocabulary(model), emit=("depth", "parent_middle", "path"))


def test_mutated_conllu_gives_right_records_or_an_error(featurizer):
    n_errors = 0
    for data in mutations(CONLLU, 1, PIECES, MANY):
        for work in cut_by_line(conllu.batches(Source("f", io.BytesIO(data)))):
            done = featurizer.run(work)
            for line in done.records:
                record.from_bytes(line.removesuffix(b"\n"))  # every record is right
            assert done.error is None or isinstance(done.error, DataError)
            assert done.error is None or 1 <= done.error.line <= data.count(b"\n") + 1
            n_errors += done.error is not None
    assert 0.2 < n_errors / MANY < 0.95


def test_mutated_records_are_right_or_refused(featurizer):
    (work, *_) = cut_by_line(conllu.batches(Source("f", io.BytesIO(CONLLU))))
    line = featurizer.run(work).records[0].removesuffix(b"\n")

    def read(data):
        found = record.from_bytes(data)
        again = record.to_bytes(found).removesuffix(b"\n")
        assert record.from_bytes(again) == found

    assert 0.2 < share_refused(line, 2, JSON_PIECES, read, MANY) < 0.999
