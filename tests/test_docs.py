"""The documents say what the program does."""

import importlib.util
import re
import subprocess
import sys
import textwrap

import pytest
from support.program import ROOT

from synmt_cli import cli
from synmt_cli.core.run.presets import PRESETS
from synmt_cli.core.run.settings import every
from synmt_cli.core.text.tokenizers import TOKENIZERS
from synmt_cli.formats import record

MAN = ROOT / "man"
PAGES = MAN / "man1"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("man_generate", ROOT / "man" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_man_pages_are_what_the_option_table_gives(generate):
    for name, text in generate.pages().items():
        assert (MAN / name).read_text(encoding="utf-8") == text, f"{name}: run make man"
    assert {str(p.relative_to(MAN)) for p in MAN.glob("man*/*")} == generate.pages().keys()


def test_every_setting_and_preset_is_in_the_page_of_settings(generate):
    page = generate.configuration()
    for key in (*(one.key for one in every()), *PRESETS):
        assert generate.escape(key) in page


@pytest.mark.parametrize("name", ["score", "tune"])
def test_help_names_every_tokenizer(generate, name):
    *others, last = TOKENIZERS
    page = generate.pages()[f"man1/synmt-{name}.1"]
    assert generate.escape(f"{', '.join(others)} and {last}") in " ".join(page.split())


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_flag_is_in_its_page(name):
    page = (PAGES / f"synmt-{name.replace(' ', '-')}.1").read_text(encoding="utf-8")
    for param in cli.load(name).params:
        for flag in (*param.opts, *param.secondary_opts):
            if flag.startswith("-"):
                assert flag.replace("-", "\\-") in page


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_is_in_the_readme_and_in_the_overview(name):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    of_group = " " in name and f"`{name.split()[1]}`" in readme
    assert re.search(rf"`(synmt )?{re.escape(name)}`", readme) or of_group
    overview = (PAGES / "synmt.1").read_text(encoding="utf-8")
    assert f"synmt {name}".replace("-", "\\-") in overview


def examples():
    """Yields the examples of all commands. Those that train or search take most of the time."""
    for name in cli.COMMANDS:
        for example in cli.manual(name).examples:
            is_long = re.search(r"synmt (train|parser train|translate|tune|analyze)\b", example)
            marks = [pytest.mark.long] if is_long else []
            yield pytest.param(example, id=example[:60], marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("example", list(examples()))
def test_examples_in_help_and_man_run(example, example_folder, shell):
    done = shell(example, example_folder)
    assert done.returncode == 0, done.stderr.decode()


def block_of(page, title):
    text = (ROOT / page).read_text(encoding="utf-8")
    block = re.search(rf"## {title}\n\n(?:[^ #].*\n+)+((?: {{4}}.*\n)+)", text)[1]
    return textwrap.dedent(block)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "title", "files", "result", "least"),
    [
        pytest.param(
            "README.md",
            "Does syntax help on your text\\?",
            {"train.en", "train.de", "en.udpipe"},
            "experiment/scores.txt",
            4,
            marks=pytest.mark.long,  # six trainings
        ),
        pytest.param(
            "README.md",
            "The pipe",
            {f"{s}.{side}" for s in ("train", "dev", "test") for side in ("en", "de")}
            | {"en.udpipe"},
            "pascal.de",
            12,
            marks=pytest.mark.long,
        ),
        (
            "README.md",
            "Where do they differ\\?",
            {f"test.{side}" for side in ("en", "de")} | {"train.en", "vanilla.de", "pascal.de"},
            "chrf.tsv",
            24,
        ),
        pytest.param(
            "docs/target-trees.md",
            "By hand",
            {f"{s}.{side}" for s in ("train", "dev", "test") for side in ("en", "de")}
            | {"en.udpipe", "de.udpipe"},
            "hyp.conllu",
            12,
            marks=pytest.mark.long,
        ),
    ],
)
def test_pages_run_as_typed(tmp_path, example_folder, shell, page, title, files, result, least):
    """A block runs without any option added, in a folder that has only the files it names.

    least: how many lines (or trees) the result has at least; each text has 12 lines.

    One parser serves both languages, since it gives any text a tree.
    """
    block = block_of(page, title)
    for name in files:
        if name.endswith("udpipe"):
            (tmp_path / name).write_bytes((example_folder / "en.udpipe").read_bytes())
        else:
            lines = (example_folder / name).read_bytes().splitlines(keepends=True)
            (tmp_path / name).write_bytes(b"".join(lines[:12]))
    done = shell(block, tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    end = b"\n\n" if result.endswith("conllu") else b"\n"
    assert (tmp_path / result).read_bytes().count(end) >= least


@pytest.mark.long
def test_the_page_on_back_translation_runs_as_printed(tmp_path, example_folder, shell):
    """With 4 pairs, and 3 lines that have only a target."""
    page = (ROOT / "docs" / "back-translation.md").read_text(encoding="utf-8")
    for name in ("en.udpipe", "spm.model"):
        (tmp_path / name).write_bytes((example_folder / name).read_bytes())
    copied = {"train.en": 4, "train.de": 4, "dev.en": 2, "dev.de": 2, "dev.jsonl": 2, "test.de": 3}
    for name, n in copied.items():
        lines = (example_folder / name).read_bytes().splitlines(keepends=True)
        (tmp_path / name.replace("test", "mono")).write_bytes(b"".join(lines[:n]))
    done = shell("".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)), tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "mono.en").read_bytes().count(b"\n") == 3
    assert (tmp_path / "runs/more/model.safetensors").exists()


def library_page():
    """The commands and the program of docs/library.md."""
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    [found] = re.findall(r"```sh\n(.*?)```.*?```python\n(.*?)```", page, re.DOTALL)
    return found


@pytest.mark.long
def test_the_library_page_runs_as_printed(tmp_path, shell):
    """In an empty folder: the page makes every file that it reads."""
    commands, program = library_page()
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    done = shell(f"{commands}\npython example.py", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert float(re.fullmatch(rb"BLEU (\d+\.\d\d)\n", done.stdout)[1]) > 5


@pytest.mark.long
def test_a_type_checker_finds_nothing_in_the_library_page(tmp_path):
    """The page says that the package is typed."""
    _, program = library_page()
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "example.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("variant", ["parent", "gps"])
def test_the_library_page_is_right_for_other_models(tmp_path, shell, variant):
    """The test set has labels that do not occur in training."""
    commands, program = library_page()
    assert program.count('"pascal"') == program.count("range(5)") == 1
    program = program.replace('"pascal"', f'"{variant}"').replace("range(5)", "range(1)")
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    commands = commands.replace("-n 1000", "-n 100").replace("-n 50", "-n 10")
    commands = commands.replace("--seed 2 --phenomena plain --depth 0", "--seed 2")
    labels = "for s in train test; do cut -sf 8 $s.en.conllu | sort -u > $s.labels; done"
    differ = "comm -13 train.labels test.labels | grep ."
    done = shell(f"set -e; {commands}\n{labels}\n{differ} > new\npython example.py", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert re.fullmatch(rb"BLEU \d+\.\d\d\n", done.stdout)


def test_the_page_of_records_has_every_field_and_a_whole_record():
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    [line] = re.findall(r"```json\n(.*\n)```", page)
    found = record.from_bytes(line.encode())
    assert record.to_bytes(found).decode() == line
    assert found.extra == {}
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(record.FIELDS)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/library.md"])
def test_documents_name_files_that_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:docs|benchmarks|tests|man|examples)/[\w./-]*\w", text):
        assert (ROOT / path).exists(), path


def headings(page):
    """The anchors of a page of Markdown, as code hosts make them."""
    for heading in re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def pages():
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for file, _, heading in (link.partition("#") for link in links if "://" not in link):
        there = page.parent / file if file else page
        assert there.exists(), file
        assert not heading or heading in headings(there), f"{file}#{heading}"


def test_decisions_have_numbers_of_their_own():
    names = [path.name for path in (ROOT / "docs" / "decisions").glob("*.md")]
    numbers = sorted(int(name[:4]) for name in names)
    assert numbers == [*range(1, len(names) + 1)]


def test_make_demo_is_a_script_that_bash_can_read():
    for script in (ROOT / "examples").glob("*.sh"):
        subprocess.run(["bash", "-n", script], check=True)
