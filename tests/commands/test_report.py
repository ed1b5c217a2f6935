"""`synmt report` as a user runs it, and its page in a real browser."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from support.browser import CHROMIUM, Browser

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = "</details><script>alert(1)</script> \"'&amp; \u202eabc " + "w" * 10_000
VOID = {"meta", "br", "input", "use", "path", "line"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, forked):
    """A comparison of two seeds of two systems, with hostile text in all places."""
    made = tmp_path_factory.mktemp("report")
    n = 12
    (made / "src").write_text("".join(f"Satz {i} {HOSTILE}\n" for i in range(n)))
    (made / "ref").write_text("".join(f"sentence {i} of the test set\n" for i in range(n)))
    for seed in (1, 2):
        text = "".join(f"sentence {i} of a test\n" for i in range(n))
        (made / f"base.{seed}").write_text(text)
        text = "".join(f"sentence {i} {'of the' * (i % 2)} {HOSTILE}\n" for i in range(n))
        (made / f"new.{seed}").write_text(text)
    tree = (
        f"1\tSatz\t_\tX\t_\t_\t2\t{HOSTILE[:60]}\t_\t_\n2\t{HOSTILE}\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    )
    tree = tree.replace(" ", "\xa0").replace("\u202e", "")
    (made / "trees").write_text("".join(f"# text = Satz {i} {HOSTILE}\n{tree}" for i in range(n)))
    for name in ("base.1", "new.1"):
        run = made / "runs" / name
        run.mkdir(parents=True)
        (run / "config.toml").write_text(f'format = 1\nvariant = "{name}"\n[training]\nlr = 0.1\n')
        facts = {"event": "dev", "metric": "bleu", "perplexity": 9.0}
        lines = [json.dumps({**facts, "step": i, "value": 3, "best": i < 3}) for i in (1, 2, 3, 4)]
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    systems = [f"{name}={name}.{seed}" for name in ("base", "new") for seed in (1, 2)]
    options = ["--format", "json", "-o", "score.json", "--samples", "50", "--by", "length:5"]
    done = forked("score", *options, "--src", "src", "ref", *systems, cwd=made)
    assert done.returncode == 0, done.stderr
    all_parts = ["--score", "score.json", "--src", "src", "--src-trees", "trees", "-o", "r.html"]
    done = forked("report", *all_parts, "runs/base.1", "runs/new.1", cwd=made)
    assert (done.returncode, done.stderr) == (0, b"")
    return made


class Elements(HTMLParser):
    """The elements of a page; fails where they are not nested."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in ("dd", "dt") and tag not in ("dd", "dt"):
            self.open.pop()
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_holds_every_part_and_no_text_is_markup(folder):
    page = (folder / "r.html").read_text()
    elements = Elements(page)
    assert [tag for tag, _ in elements.found].count("script") == 1
    assert not [a for _, a in elements.found if any(name.startswith("on") for name in a)]
    addresses = [a[name] for _, a in elements.found for name in ("src", "href") if a.get(name)]
    assert all(one.startswith(("#", "data:")) for one in addresses)
    assert "\u202e" not in page
    assert "\\u202e" in page
    ids = [
        a["id"] for _, a in elements.found if "id" in a and not re.match("[mp][0-9a-f]", a["id"])
    ]
    assert len(ids) == len(set(ids))
    text = "".join(elements.text)
    for part in ("Scores in buckets", "Training", "Segments", "Settings and versions"):
        assert part in text
    assert "95 % interval" in text
    assert "means of 2 seeds ± standard deviation" in text
    assert "synmt plot scores --metric bleu --by systems" in text
    assert "synmt plot scores --metric bleu --by length:5 -o bleu.length-5.pdf score.json" in text
    typed = "score --format json -o score.json --samples 50 --by length:5 --src src ref base=base.1"
    assert typed in text
    assert 'bleu 3.00</td><td data-value="2.0">2</td>' in page  # the later one marked best
    assert page.count('class="seg"') == 12
    assert page.count("tree of the source") == 12
    sorts = [a["value"] for tag, a in elements.found if tag == "option"]
    n = len([value for value in sorts if value[0] == "c"])
    gains = [f"{kind}{i}" for i in range(1, n) for kind in "gw"]
    assert sorts == ["d", "i", "l", *gains, *(f"c{i}" for i in range(n))]
    assert len(page.encode()) < 5_000_000


def test_both_trees_of_a_segment_have_ids_of_their_own(forked, folder):
    trees = ("--src-trees", "trees", "--tgt-trees", "trees")
    done = forked("report", "--score", "score.json", "--src", "src", *trees, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    found = Elements(done.stdout.decode()).found
    ids = [a["id"] for tag, a in found if tag in ("title", "desc") and "id" in a]
    assert len(ids) == len(set(ids)) > 24


def test_attention_to_what_the_trees_do_not_have_has_no_edges(forked, folder, tmp_path):
    rows = (f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, word in ((1, "ab"), (2, "cd")))
    (tmp_path / "trees").write_text("# sent_id = 7.1\n# synmt_line = 7\n" + "".join(rows) + "\n")
    pages = {}
    for name, pieces in (("7", ["▁ab", "▁cd"]), ("7", ["▁x", "▁y"]), ("8", ["▁ef", "▁gh"])):
        weights = [{"layer": 0, "head": 0, "rows": [[0.5, 0.5], [1.0, 0.0]]}]
        one = {"id": name, "status": "ok", "stack": "encoder", "tokens": pieces, "keys": pieces}
        (tmp_path / "att.jsonl").write_text(json.dumps({**one, "weights": weights}) + "\n")
        options = ("--attention", "att.jsonl", "--src-trees", "trees")
        done = forked("report", *options, folder / "runs/base.1", cwd=tmp_path)
        assert done.returncode == 0
        pages[pieces[0]] = done
    assert b"without the edges" not in pages["▁ab"].stderr
    assert b"segment 7 is without the edges of its tree" in pages["▁x"].stderr
    other = b"segment 8 is without the edges of a tree: trees has no single one with its id"
    assert other in pages["▁ef"].stderr
    assert pages["▁ab"].stdout.count(b"<path") > pages["▁x"].stdout.count(b"<path")


def test_the_page_says_how_its_attention_is_drawn_again(forked, folder, tmp_path):
    """The page speaks of frames where there are some, and its command draws what is shown."""
    rows = (f"{i}\t{word}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, word in ((1, "ab"), (2, "cd")))
    (tmp_path / "trees").write_text("# sent_id = 7\n" + "".join(rows) + "\n")
    pieces = ["▁ab", "▁cd"]
    for stack, n_layers in (("encoder", 1), ("encoder", 7), ("cross", 7)):
        weights = [
            {"layer": layer, "head": head, "rows": [[0.5, 0.5], [1.0, 0.0]]}
            for layer in range(n_layers)
            for head in range(5)
        ]
        one = {"id": "7", "status": "ok", "stack": stack, "tokens": pieces, "keys": pieces}
        (tmp_path / "att.jsonl").write_text(json.dumps({**one, "weights": weights}) + "\n")
        options = ("--attention", "att.jsonl", "--src-trees", "trees")
        done = forked("report", *options, folder / "runs/base.1", cwd=tmp_path)
        page = done.stdout.decode()
        assert ("Frames: a word and its head." in page) == (stack == "encoder")
        assert ("30 more maps are not shown." in page) == (n_layers == 7)
        (typed,) = re.findall("synmt plot attention [^\n<]*", page)
        assert ("--layers 0 --heads 0,1,2,3,4" in typed) == (n_layers == 7)
        assert ("--trees trees" in typed) == (stack == "encoder")
        assert forked(*shlex.split(typed)[1:], cwd=tmp_path).returncode == 0
        assert (tmp_path / "heads.7.pdf").stat().st_size > 1000
        (tmp_path / "heads.7.pdf").unlink()


def test_attention_too_large_for_a_page_is_passed_over(forked, folder, tmp_path):
    lines = []
    for name, n_keys in (("7", 220), ("8", 2)):
        weights = [{"layer": 0, "head": 0, "rows": [[1 / n_keys] * n_keys]}]
        one = {"id": name, "status": "ok", "stack": "cross", "tokens": ["▁a"], "weights": weights}
        lines.append(json.dumps({**one, "keys": ["▁b"] * n_keys}) + "\n")
    for n, shown in ((2, True), (1, False)):
        (tmp_path / "att.jsonl").write_text("".join(lines[:n]))
        done = forked("report", "--attention", "att.jsonl", folder / "runs/base.1", cwd=tmp_path)
        assert done.returncode == 0
        assert (b"Attention in segment 8" in done.stdout) == shown
        assert (b"att.jsonl has no segment of 60 tokens or fewer" in done.stderr) != shown


def test_notes_below_the_scores_are_those_of_what_is_there(forked, folder, tmp_path):
    notes = ("Framed: the best score.", "** p", "p is not corrected: of 2 comparisons")
    systems = (folder / "base.1", folder / "new.1")
    for n, options, said in (
        (1, (), (False, False, False)),
        (2, ("--paired", "none"), (True, False, False)),
        (2, (), (True, True, False)),
        (2, ("--correct", "none"), (True, True, True)),
    ):
        few = () if options[:1] == ("--paired",) else ("--samples", "50")
        written = ("--format", "json", "-o", tmp_path / "score.json", *few, *options)
        done = forked("score", *written, folder / "ref", *systems[:n])
        assert done.returncode == 0, done.stderr
        page = forked("report", "--score", tmp_path / "score.json").stdout.decode()
        text = "".join(Elements(page).text)
        assert tuple(note in text for note in notes) == said
        assert ("the difference to the first system" in text) == said[1]


def test_scores_of_segments_are_made_again_from_the_files_that_are_shown(forked, folder):
    others = ("--segments", "a=base.2", "--segments", "b=new.2", "--ref", "src")
    for scored in (("--score", "score.json"), ()):
        done = forked("report", *scored, *others, cwd=folder)
        assert done.returncode == 0, done.stderr
        typed = "synmt score -M chrf --format segments src a=base.2 b=new.2"
        assert typed in "".join(Elements(done.stdout.decode()).text)


def test_the_page_says_whose_seeds_and_references_its_segments_are(forked, folder, tmp_path):
    first = "Each output is that of the system's first seed."
    assert first in "".join(Elements((folder / "r.html").read_text()).text)
    options = ["--refs", "src", "ref", "base.1", "new.1", "--format", "json", "-o", "score.json"]
    for name in ("ref", "src", "base.1", "new.1"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert forked("score", *options, cwd=tmp_path).returncode == 0
    named = ["--ref", "ref", "--refs", "src", "--segments", "base.1", "--segments", "new.1"]
    for arguments in (["--score", "score.json"], named):
        text = "".join(Elements(forked("report", *arguments, cwd=tmp_path).stdout.decode()).text)
        assert "against 2 references, of which the first is shown" in text
        assert "synmt score -M chrf --format segments --refs src ref base.1 new.1" in text
        assert first not in text
    (tmp_path / "src").unlink()
    done = forked("report", "--score", "score.json", cwd=tmp_path)
    assert b"The reference src is missing: name all by --ref and --refs." in done.stderr
    assert b"chrF of the segment" not in done.stdout


def test_the_title_is_text_that_is_asked_for(forked, folder):
    done = forked("report", "--title", "A <b>", folder / "runs/base.1", cwd=folder)
    assert b"<title>A &lt;b&gt;</title>" in done.stdout
    assert b"<h1>A &lt;b&gt;</h1>" in done.stdout


def test_what_is_missing_is_said(forked, folder, tmp_path):
    (tmp_path / "score.json").write_bytes((folder / "score.json").read_bytes())
    done = forked("report", "--score", "score.json", cwd=tmp_path)
    assert done.returncode == 0
    said = "base.1, which was scored, is missing. Name outputs by --segments."
    assert said.encode() in done.stderr
    assert said.encode() in done.stdout
    alone = forked("report", folder / "runs/base.1", cwd=tmp_path)
    assert alone.returncode == 0
    assert b"<h2>Training</h2>" in alone.stdout
    assert b"<h2>Segments</h2>" not in alone.stdout


def test_the_answer_and_what_speaks_against_it_come_first(forked, folder, tmp_path):
    """The words of `synmt score`, then doubts: a run still improves, a penalty is at its limit."""
    rerun = tmp_path / "rerun"
    shutil.copytree(folder / "runs/new.1", rerun)
    lines = (rerun / "metrics.jsonl").read_text().splitlines()
    last = {**json.loads(lines[-1]), "step": 5, "perplexity": 8.5}
    (rerun / "metrics.jsonl").write_text("\n".join([*lines, json.dumps(last)]) + "\n")
    value = {"brevity_penalty": 1.0, "length_ratio": 1.0, "cut": 0, "closed": None}
    values = [{**value, "lenpen": lenpen, "bleu": 10 * lenpen} for lenpen in (0.5, 1.0)]
    tuned = {"segments": 2, "beam": 5, "patience": None, "signature": "s", "values": values}
    (tmp_path / "tuned.json").write_text(json.dumps({**tuned, "best": values[1]}))
    options = ["--score", folder / "score.json", "--tuned", f"base={tmp_path}/tuned.json"]
    done = forked("report", *options, folder / "runs/base.1", rerun, cwd=folder)
    assert done.returncode == 0
    doubts = (
        f"1 of 2 trainings still improved at the end ({rerun}): longer ones may end with other "
        "differences.",
        "Length penalty of base: the best, 1, is the greatest value tried: greater ones may be "
        "better.",
    )
    warnings = "".join(f"synmt report: warning: {one}\n" for one in doubts)
    assert done.stderr.decode() == warnings
    text = forked("score", "--from-report", folder / "score.json", cwd=folder).stdout.decode()
    verdicts = text.split("\nIn words, against base:\n")[1].splitlines()
    assert verdicts[0].startswith("new: ")
    page = Elements(done.stdout.decode()).text
    shown = [page.index(one) for one in (*verdicts, *doubts, "Scores in buckets")]
    assert shown == sorted(shown)


def test_scores_of_other_programs_and_runs_without_a_curve(forked, folder, tmp_path):
    (tmp_path / "own").write_text("base\t0.5\nbase\t0.5\nnew\t0.25\nnew\t0.75\n")
    options = ["--segment-scores", "own=own", "--format", "json", "-o", "score.json"]
    assert forked("score", *options, cwd=tmp_path).returncode == 0
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.toml").write_text("format = 1\n[training]\nlr = 0.1\n")
    done = forked("report", "--score", "score.json", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"run has no curve." in done.stderr
    assert b"synmt plot curves" not in done.stdout
    text = done.stdout.decode()
    assert "2 segments." in text
    assert "synmt score --segment-scores own=own --format json -o score.json" in text
    done = forked("report", folder / "runs/base.1", "run", cwd=tmp_path)
    assert f"synmt plot curves -o curves.pdf {folder}/runs/base.1<".encode() in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, b"there is nothing to report: name runs, --score or --segments"),
        (["--src", "ref"], 2, b"there is nothing to report: name runs"),
        (["--score", "no"], 66, b"no: No such file"),
        (["--score", "empty"], 65, b"empty: not from `synmt score --format json`: invalid JSON"),
        (
            ["--score", "score.json", "--src", "one"],
            65,
            b"one: 1 line, but the scored test set has 12",
        ),
        (
            ["--segments", "one", "--src-trees", "trees"],
            65,
            b"trees: trees of 12 lines, but 1 segm",
        ),
        (
            ["--segments", "ref", "--src", "ref", "--src-trees", "trees"],
            65,
            b"trees: tree 1 is that of 'Satz 0 ",
        ),
        (["--segments", "one", "--src-trees", "one"], 65, b"one:1: expected CoNLL-U or records"),
        (["--segments", "one", "--ref", "ref"], 65, b"ref: 12 lines, but one has 1"),
        (["runs"], 66, b"runs is not a run directory"),
        (["--ref", "-", "--segments", "a=-"], 2, b"only one input can be stdin"),
        (["--segments", "a=one", "--segments", "a=ref"], 2, b"--segments names 'a' twice"),
        (["--segments", "one", "--refs", "one"], 2, b"--refs adds to --ref: name that one, too"),
    ],
)
def test_bad_input_is_named(forked, folder, arguments, status, message):
    (folder / "empty").write_bytes(b"")
    (folder / "one").write_bytes(b"one line\n")
    done = forked("report", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr


def test_one_segment_and_none(forked, folder):
    (folder / "one").write_bytes(b"one line\n")
    (folder / "empty").write_bytes(b"")
    one = forked("report", "--segments", "one", "--ref", "one", cwd=folder)
    assert one.stdout.count(b'class="seg"') == 1
    none = forked("report", "--segments", "empty", cwd=folder)
    assert b"There are no segments." in none.stdout


# --- in a browser ----------------------------------------------------------------------------


def needs_browser(test):
    """Marks a test that looks at a page with a real browser."""
    reason = "no chromium (Debian: apt-get install chromium)"
    return pytest.mark.browser(pytest.mark.skipif(CHROMIUM is None, reason=reason)(test))


SHOWN = (
    "[...document.querySelectorAll('.seg')].filter(one => !one.hidden).map(one => one.dataset.i)"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1600])
def test_it_is_quiet_and_fits(browser, folder, width, dark):
    browser.open(folder / "r.html", width, dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert (browser.requests(), browser.messages()) == ([], [])
    colours = "getComputedStyle(document.body).backgroundColor"
    assert browser.run(colours) == ("rgb(22, 24, 28)" if dark else "rgb(255, 255, 255)")


@needs_browser
def test_search_sort_and_fold(browser, folder):
    browser.open(folder / "r.html")
    wait = "new Promise(done => setTimeout(() => done(null), 300))"
    search = "search.value = 'SATZ 7'; search.dispatchEvent(new Event('input'))"
    browser.run(f"{search}; {wait}")
    assert browser.run(SHOWN) == ["8"]
    assert browser.run("count.textContent") == "1 segment"
    for of_the_page in ("reference", "tree of the source"):
        browser.run(f"{search.replace('SATZ 7', of_the_page)}; {wait}")
        assert browser.run("count.textContent") == "0 segments"
    browser.run(f"{search.replace('SATZ 7', '')}; {wait}")
    browser.run("sort.value = 'i'; sort.dispatchEvent(new Event('change'))")
    assert browser.run(SHOWN) == [str(i) for i in range(1, 13)]
    chrf = "querySelectorAll('dt i')"
    gain = (
        f"Number.parseFloat(s.{chrf}[1].textContent) - Number.parseFloat(s.{chrf}[0].textContent)"
    )
    for sign, value in ((1, "w1"), (-1, "g1")):
        browser.run(f"sort.value = '{value}'; sort.dispatchEvent(new Event('change'))")
        gains = browser.run(f"[...document.querySelectorAll('.seg')].map(s => {gain})")
        assert gains == sorted(gains, reverse=sign < 0)
    browser.run("fold.click()")
    assert browser.run("document.querySelectorAll('.seg[open]').length") == 0
    table = "document.querySelector('table.sortable')"
    first = f"{table}.tBodies[0].rows[0].cells[0].textContent"
    button = f"{table}.tHead.rows[0].cells[1].querySelector('button')"
    browser.run(f"{button}.click(); {button}.click()")
    ascending = browser.run(first)
    browser.run(f"{button}.click()")
    assert {ascending, browser.run(first)} == {"base", "new"}
    assert browser.run(f"{table}.tHead.rows[0].cells[1].ariaSort") == "descending"
    assert (browser.requests(), browser.messages()) == ([], [])


@needs_browser
def test_text_has_contrast_and_everything_has_a_name(browser, folder):
    for dark in (False, True):
        browser.open(folder / "r.html", dark=dark)
        assert browser.run(FAINT) == []
    nameless = browser.run(
        "[...document.querySelectorAll('input,select,button,[tabindex=\"0\"],[role=img]')]"
        ".filter(one => !(one.textContent.trim() || one.labels?.length || one.ariaLabel"
        " || one.getAttribute('aria-labelledby'))).map(one => one.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    assert browser.run("document.documentElement.lang") == "en"


@needs_browser
def test_the_page_of_view_is_quiet_and_fits(browser, folder, forked):
    done = forked("view", "--format", "html", "-o", "v.html", "trees", cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    browser.open(folder / "v.html", 360)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    assert (browser.requests(), browser.messages()) == ([], [])
    assert faults(browser) == []


def faults(browser):
    """The faults that axe-core finds on the open page: (rule, how grave, the first element)."""
    axe = files("axe_core_python") / "axe.min.js"
    browser.run(axe.read_text(encoding="utf-8") + "; null")
    return browser.run(
        "axe.run().then(({violations}) => violations.map(one =>"
        " [one.id, one.impact, one.nodes[0].html.slice(0, 200)]))"
    )


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_fault(browser, folder, dark):
    browser.open(folder / "r.html", 360, dark)
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert faults(browser) == []


# The texts whose contrast with their background is below 4.5, by the formula of WCAG 2.
FAINT = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')].filter((one) =>
    [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
    && !['SCRIPT', 'STYLE', 'title', 'desc'].includes(one.tagName)).filter((one) => {
    const style = getComputedStyle(one);
    const ink = light(parts(one.closest('svg') ? style.fill : style.color));
    const paper = light(ground(one));
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
  }).map((one) => one.outerHTML.slice(0, 120));
})()
"""
