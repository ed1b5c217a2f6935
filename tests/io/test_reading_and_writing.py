"""How inputs are opened and cut into lines, and how outputs become files."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.errors import CreateError, DataError, ReadError, WriteError
from synmt_cli.io import compression, reading
from synmt_cli.io.reading import Source, lines, sources, text_lines
from synmt_cli.io.writing import output, together

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
}
DECOMPRESS = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": zstd.decompress,
}
each_format = pytest.mark.parametrize("kind", COMPRESS)
TEXT = b"".join(b"%d %x\n" % (n, n * n * 2654435761 % 2**32) for n in range(20_000))

# A filter that needs only the foundation: cat, line by line.
CAT = """
import sys
from synmt_cli import cli, signals
from synmt_cli.io import reading, writing

def cat(target, *paths, flush=False):
    with writing.output(target, "-u" in sys.argv) as writer:
        for source in reading.sources(paths):
            for line in reading.lines(source):
                writer.write(line + b"\\n")

writing.guard_descriptors()
signals.install()
try:
    cat(*[a for a in sys.argv[1:] if a != "-u"])
    status = 0
except BaseException as error:
    status = cli._status(error)
cli._leave(status)
"""


def cat(*arguments, before="", after="", stdin=b"", **options):
    """Runs CAT in a shell, as `before; cat ARGUMENTS after`. The status is CAT's own."""
    words = [sys.executable, "-c", CAT, *map(str, arguments)]
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    line = f"{before}\n{quoted} {after}\nexit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line], input=stdin, capture_output=True, timeout=60, check=False, **options
    )


def start(*arguments, stdin=subprocess.PIPE, code=CAT):
    """CAT as a running child with unbuffered pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def read(path):
    return [line for source in sources([str(path)]) for line in lines(source)]


def written(path, *records):
    with output(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path


# Lines.


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e", "\r", "\0", "\u3000"]
)
def test_nothing_but_lf_ends_a_line(tmp_path, inside):
    path = tmp_path / "x"
    path.write_bytes(f"a{inside}b\nc\n".encode())
    assert read(path) == [f"a{inside}b".encode(), b"c"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"a\nb\r", [b"a", b"b"]),
        (b"\xef\xbb\xbfa\nb\n", [b"a", b"b"]),
        (b"a\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa\n", [b"\xef\xbb\xbfa"]),
        (b"\xef\xbb\xbf\r\n", [b""]),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_line_ends_and_the_byte_order_mark(tmp_path, data, expected):
    path = tmp_path / "x"
    path.write_bytes(data)
    assert read(path) == expected


@given(st.lists(st.text().map(lambda t: t.replace("\n", "").rstrip("\r"))))
def test_any_lines_come_back(texts):
    data = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
    if data.startswith(reading.BOM):
        data = data[len(reading.BOM) :]
        texts = [texts[0][1:], *texts[1:]]
        if data.startswith(reading.BOM):
            return
    got = list(lines(Source("x", io.BytesIO(data))))
    assert got == [text.encode("utf-8", "surrogatepass") for text in texts]


def test_every_file_has_its_own_mark_and_its_own_line_numbers(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"\xef\xbb\xbfa")
    two.write_bytes(b"\xef\xbb\xbfb\nc")
    got = [
        (source.name, number, text)
        for source in sources([str(one), str(two)])
        for number, text in text_lines(source)
    ]
    assert got == [(str(one), 1, "a"), (str(two), 1, "b"), (str(two), 2, "c")]


@pytest.mark.parametrize(
    ("line", "byte"),
    [
        (b"\xff", 1),
        (b"abc\xe9 ", 4),  # Latin-1
        ("aä".encode() + b"\xed\xa0\x80", 4),  # a surrogate
        (b"\xc0\xaf", 1),  # overlong
        (b"ab\xe2\x82", 3),  # cut within a character
        (b"\xf4\x90\x80\x80", 1),  # beyond U+10FFFF
        ("a".encode("utf-16"), 1),
    ],
)
def test_invalid_utf8_is_refused_with_file_line_and_byte(tmp_path, line, byte):
    path = tmp_path / "x"
    path.write_bytes(b"fine\n" + line + b"\nfine\n")
    source_lines = (pair for source in sources([str(path)]) for pair in text_lines(source))
    assert next(source_lines) == (1, "fine")
    with pytest.raises(DataError) as caught:
        next(source_lines)
    hint = "(iconv -f LATIN1 -t UTF-8 converts text in Latin-1)"
    assert str(caught.value) == f"{path}:2: invalid UTF-8 at byte {byte} {hint}"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("command", [["filter"], ["featurize"], ["featurize", "--from", "text"]])
def test_text_in_utf16_is_named_and_not_taken_for_latin1(run, encoding, command):
    text = "1\tMädchen\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    done = run(*command, stdin=mark + text.encode(encoding))
    assert (done.returncode, done.stdout) == (65, b"")
    advice = "(it looks like UTF-16, which iconv -f UTF-16 -t UTF-8 converts)\n"
    assert done.stderr.decode().startswith(f"synmt {command[0]}: <stdin>:1: invalid UTF-8 at byte ")
    assert done.stderr.decode().endswith(advice)


def test_nul_characters_of_utf16_are_named():
    """Letters of ASCII in UTF-16 are UTF-8, too. A single NUL is another fault."""
    with pytest.raises(DataError, match=r"^f:3: NUL character \(it looks like UTF-16"):
        reading.refuse_nul("a\0b\0", "f", 3)
    with pytest.raises(DataError, match=r"^f:3: NUL character$"):
        reading.refuse_nul("ab\0", "f", 3)
    for hole in ("\0" * 9, "abc" + "\0" * 7, "a\0\0\0b\0\0\0"):  # lost blocks, and UTF-32
        with pytest.raises(DataError, match=r"^f:3: NUL character$"):
            reading.refuse_nul(hole, "f", 3)


@pytest.mark.parametrize("on_stdin", [False, True])
def test_a_zip_archive_is_named(run, tmp_path, on_stdin):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "he sees\n")
    name = "<stdin>" if on_stdin else str(path)
    done = run("filter", "-" if on_stdin else path, stdin=path.read_bytes())
    assert (done.returncode, done.stdout) == (65, b"")
    said = f"{name}: this is a zip archive; unpack it first (unzip -p writes what it holds)"
    assert done.stderr.decode() == f"synmt filter: {said}\n"
    assert run("check", path).stdout.decode() == f"{path}: {said.removeprefix(f'{name}: ')}\n"


@pytest.mark.parametrize("size", [0, 98, 99, 100, 10**6])
def test_what_is_read_whole_has_a_limit(size):
    source = Source("<stdin>", io.BufferedReader(io.BytesIO(TEXT[:1] * size)))
    if size <= 99:
        assert reading.whole(source, 99, "a vocabulary") == TEXT[:1] * size
    else:
        with pytest.raises(
            DataError, match="<stdin>: more than the 99 bytes that a vocabulary may"
        ):
            reading.whole(source, 99, "a vocabulary")
        assert source.file.tell() < 2 * reading.BUFFER


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_over_the_limit_is_refused_with_its_number(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(reading, "LINE_LIMIT", 100)
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"b" * 100 + b"\n" + b"c" * 100 + ending)
    assert [len(line) for line in read(path)] == [1, 100, 100]
    path.write_bytes(b"a\n" + b"b" * 101 + ending)
    with pytest.raises(DataError, match=r":2: line longer than"):
        read(path)


# Inputs.


@each_format
@pytest.mark.parametrize("name", ["x", "x.txt", "x.gz", "x.zst"])
def test_compression_is_known_by_its_first_bytes_not_by_the_name(tmp_path, kind, name):
    path = tmp_path / name
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read(path) == TEXT.split(b"\n")[:-1]


@pytest.mark.parametrize("name", ["x.gz", "x.xz"])
def test_plain_text_under_a_compressed_name_is_plain_text(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"B\nZh\n")
    assert read(path) == [b"B", b"Zh"]


def test_text_may_begin_as_compressed_data_does(tmp_path):
    (tmp_path / "text").write_bytes(b"BZh9 is how bzip2 begins.\n")
    assert read(tmp_path / "text") == [b"BZh9 is how bzip2 begins."]


@each_format
def test_compression_is_known_on_stdin(kind):
    assert cat("-", stdin=COMPRESS[kind](TEXT)).stdout == TEXT


@each_format
def test_a_pipe_may_bring_the_first_bytes_one_by_one(kind):
    data = COMPRESS[kind](b"a\nb\n")
    parts = Slow(data[:1], data[1:2], data[2:3], data[3:])
    assert compression.decompressed(io.BufferedReader(parts)).read() == b"a\nb\n"


def test_a_short_first_line_is_not_held_back():
    """`B` may begin bzip2, but `B` and LF may not, and a person waits for an answer."""
    with start("-", "-u") as child:
        child.stdin.write(b"B\n")
        assert child.stdout.read(2) == b"B\n"
        child.communicate(timeout=30)


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
@pytest.mark.parametrize("compressed", [False, True])
def test_pipes_that_are_set_not_to_block_are_waited_for(compressed, target):
    """Nothing is lost while there is no input yet, or no room for more output."""
    data = gzip.compress(TEXT) if compressed else TEXT
    given, to_give = os.pipe()
    to_take, taken = os.pipe()
    os.set_blocking(given, False)
    os.set_blocking(taken, False)
    with subprocess.Popen(
        [sys.executable, "-c", CAT, target, "-"],
        stdin=given,
        stdout=taken,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(given)
        os.close(taken)
        time.sleep(1)  # the input is empty
        os.write(to_give, data[:1])
        time.sleep(0.2)

        def give():
            with open(to_give, "wb") as file:
                file.write(data[1:])

        giver = threading.Thread(target=give)
        giver.start()
        time.sleep(1)  # the output is full: a pipe holds 64 KiB
        with open(to_take, "rb") as file:
            assert file.read() == TEXT
        giver.join()
        assert process.wait(10) == 0, process.stderr.read()


def test_a_terminal_gets_each_record_at_once():
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", CAT, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, bufsize=0) as child:
        child.stdin.write(b"a\n")
        assert os.read(ours, 10) == b"a\r\n"
        child.communicate(timeout=30)
    os.close(theirs)
    os.close(ours)


@each_format
def test_members_one_behind_the_other_are_all_read(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(COMPRESS[kind](b"a\n") + COMPRESS[kind](b"b\n"))
    assert read(path) == [b"a", b"b"]


@each_format
@pytest.mark.parametrize("kept", ["half", "all but one byte", "the first bytes"])
def test_cut_compressed_data_is_never_a_short_input(tmp_path, kind, kept):
    path, data = tmp_path / "x", COMPRESS[kind](TEXT)
    n = {"half": len(data) // 2, "all but one byte": len(data) - 1, "the first bytes": 8}[kept]
    path.write_bytes(data[:n])
    with pytest.raises(DataError, match=r"x:\d+: damaged compressed data: "):
        read(path)


@each_format
@pytest.mark.parametrize("place", [0.3, 0.5, 0.99])
def test_a_flipped_bit_in_compressed_data_is_noticed(tmp_path, kind, place):
    path, data = tmp_path / "x", bytearray(COMPRESS[kind](TEXT))
    data[int(place * len(data))] ^= 16
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"x:\d+: damaged compressed data: "):
        read(path)


PARTS = [b"%d\n%d\n" % (n, n + 1) for n in range(0, 12, 2)]  # two lines each


def lines_and_problem(path):
    """The lines before the data is found damaged, and the message, "" for sound data."""
    lines = []
    try:
        with reading.open_source(str(path)) as source:
            lines.extend(reading.lines(source))
    except DataError as error:
        return lines, str(error)
    return lines, ""


@each_format
@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_in_a_later_stream_ends_the_input_in_silence(tmp_path, kind, bit):
    """Flips a bit in the head of each later stream, where a reader checks whether there is one."""
    path, streams = tmp_path / "x", [COMPRESS[kind](part) for part in PARTS]
    whole = b"".join(PARTS).splitlines()
    for n in range(1, len(streams)):
        begin = sum(map(len, streams[:n]))
        for place in range(begin, begin + 12):
            data = bytearray(b"".join(streams))
            data[place] ^= 1 << bit
            path.write_bytes(data)
            lines, problem = lines_and_problem(path)
            assert lines == whole[: len(lines)]
            assert problem or lines == whole, (n, place - begin)
            assert not problem or f"x:{len(lines) + 1}: damaged compressed data: " in problem


@each_format
@pytest.mark.parametrize("after", [b"plain\n", b"x", b"\0\0\0\0x", b"\n"])
def test_what_follows_compressed_data_is_not_passed_over(tmp_path, kind, after):
    path, data = tmp_path / "x", b"".join(map(COMPRESS[kind], PARTS))
    path.write_bytes(data + after)
    lines, problem = lines_and_problem(path)
    assert lines == b"".join(PARTS).splitlines()
    n_zeros = len(after) - len(after.lstrip(b"\0"))
    offset = len(data) + (n_zeros if kind in ("gz", "xz") else 0)
    assert (
        f"x:{len(lines) + 1}: damaged compressed data: what follows at offset {offset}" in problem
    )


@each_format
@pytest.mark.parametrize("n_zeros", [1, 4, 7, 8, 70_000])
def test_zeros_are_padding_where_the_format_has_it(tmp_path, kind, n_zeros):
    """gz: any number (tapes, and gzip itself); xz: a multiple of four; bz2 and zst: none."""
    path, streams = tmp_path / "x", [COMPRESS[kind](part) for part in PARTS]
    path.write_bytes(streams[0] + bytes(n_zeros) + streams[1] + bytes(n_zeros))
    lines, problem = lines_and_problem(path)
    is_padding = kind == "gz" or (kind == "xz" and n_zeros % 4 == 0)
    assert lines == b"".join(PARTS[: 2 if is_padding else 1]).splitlines()
    assert bool(problem) != is_padding


class Slow(io.RawIOBase):
    """Bytes that come in two parts."""

    def __init__(self, *parts):
        self.parts = [*parts]

    def readable(self):
        return True

    def readinto(self, buffer):
        part = self.parts.pop(0) if self.parts else b""
        buffer[: len(part)] = part
        return len(part)


def in_two(data, cut):
    return compression.decompressed(io.BufferedReader(Slow(data[:cut], data[cut:]))).read()


@pytest.mark.parametrize("flags", [0, 2, 4, 8, 16, 8 | 16, 2 | 4 | 8 | 16])
def test_a_header_of_gz_may_come_in_two_parts(flags):
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff"
    for flag, field in ((4, b"\x05\0extra"), (8, b"a name\0"), (16, b"a comment\0")):
        head += field if flags & flag else b""
    if flags & 2:
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    text = b"a dog\n" * 9
    deflated = zlib.compressobj(6, zlib.DEFLATED, -15)
    end = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    data = head + deflated.compress(text) + deflated.flush() + end
    for cut in range(1, len(head) + 3):
        assert in_two(data, cut) == text
        whole = gzip.compress(b"one\n")
        assert in_two(whole + data, len(whole) + cut) == b"one\n" + text


def test_padding_may_come_in_two_parts():
    data = lzma.compress(b"a dog") + bytes(4)
    for cut in range(len(data) - 4, len(data) + 1):
        file = compression.decompressed(io.BufferedReader(Slow(data[:cut], data[cut:])))
        assert [file.read(5), file.read(), file.read()] == [b"a dog", b"", b""]


def test_frames_of_zst_that_hold_no_text_are_skipped(tmp_path):
    path, skipped = tmp_path / "x", b"\x53\x2a\x4d\x18\x04\0\0\0none"
    data = skipped + COMPRESS["zst"](b"a\n") + skipped + COMPRESS["zst"](b"b\n") + skipped
    path.write_bytes(data)
    assert read(path) == [b"a", b"b"]


def test_a_frame_of_zst_may_have_any_window(tmp_path):
    """That of `zstd --long=31` has two gigabytes; its memory is taken only as it is filled."""
    parameter = zstd.CompressionParameter
    options = {parameter.window_log: parameter.window_log.bounds()[1], parameter.checksum_flag: 1}
    compressor = zstd.ZstdCompressor(options=options)  # of a stream, whose size it does not know
    (tmp_path / "x").write_bytes(compressor.compress(b"a\n") + compressor.flush())
    assert read(tmp_path / "x") == [b"a"]


@each_format
@pytest.mark.parametrize(
    "command", ["filter", "info", "check", "view", "bucket-by-length --format=counts"]
)
def test_a_cut_is_the_datas_fault_in_commands_that_look_first(tmp_path, run, kind, command):
    block = b"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "x").write_bytes(COMPRESS[kind](block * 9)[:-3])
    done = run(*command.split(), "x", cwd=tmp_path)
    assert done.returncode == (1 if command == "check" else 65)
    assert b"damaged compressed data" in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["", *COMPRESS])
def test_the_bytes_that_were_read_still_count_when_a_file_is_closed(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(COMPRESS[kind](TEXT) if kind else TEXT)
    names = [str(path)]
    for times in (1, 2):
        for source in sources(names):
            for _ in lines(source):
                pass
            assert reading.bytes_read(names) == times * path.stat().st_size
        assert reading.bytes_read(names) == times * reading.bytes_in(names)


@each_format
def test_an_empty_compressed_file_is_an_empty_input(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(COMPRESS[kind](b""))
    assert read(path) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing", "No such file or directory"), (".", "Is a directory"), ("x/y", "Not a directory")],
)
def test_what_cannot_be_read_is_named(tmp_path, name, reason):
    (tmp_path / "x").touch()
    with pytest.raises(ReadError, match=rf"cannot read .*: {reason}"):
        read(tmp_path / name)


def test_an_odd_name_is_escaped_in_the_message(tmp_path):
    odd = os.fsdecode(b"new\nline \xff -x")
    with pytest.raises(ReadError, match=r"new\\nline \\udcff -x: No such file"):
        read(tmp_path / odd)
    path = tmp_path / odd
    path.write_bytes(b"a\n")
    assert read(path) == [b"a"]


def test_operands_are_read_in_order_and_a_dash_is_stdin(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n")
    (tmp_path / "b").write_bytes(COMPRESS["gz"](b"3"))
    done = cat("-", tmp_path / "a", "-", tmp_path / "b", stdin=b"2")
    assert done.stdout == b"1\n2\n3\n"


def test_a_missing_second_file_comes_after_the_first_ones_records(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n")
    done = cat("-", tmp_path / "a", tmp_path / "none")
    assert (done.stdout, done.returncode) == (b"1\n2\n", 66)
    assert done.stderr.count(b"\n") == 1


# Outputs.


@each_format
def test_output_is_compressed_by_suffix(tmp_path, kind):
    path = written(tmp_path / f"x.{kind}", TEXT[:99], TEXT[99:], b"")
    assert DECOMPRESS[kind](path.read_bytes()) == TEXT
    again = written(tmp_path / f"y.{kind}", TEXT[:99], TEXT[99:])
    assert again.read_bytes() == path.read_bytes()  # no time, no name inside


@each_format
def test_no_flipped_bit_in_an_output_makes_another_text(tmp_path, kind):
    """Flips every bit in turn. A few mean nothing, such as the system that wrote a gz."""
    path = written(tmp_path / f"x.{kind}", b"he sees\n", b"the car\n")
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            texts = [text for source in sources([str(path)]) for _, text in text_lines(source)]
        except DataError:
            continue
        assert texts == ["he sees", "the car"], bit


def test_output_without_such_a_suffix_is_plain(tmp_path):
    assert written(tmp_path / "x.gz.txt", b"a\n").read_bytes() == b"a\n"


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "x"
    with output(str(path)) as writer:
        writer.write(TEXT)
        writer.flush()
        assert not path.exists()
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_nothing_is_compressed_as_well(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    with output(str(path)):
        pass
    assert path.stat().st_size
    assert DECOMPRESS[kind](path.read_bytes()) == b""


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("error", [DataError("f", 3, "bad"), KeyboardInterrupt()])
def test_after_an_error_the_old_file_stands_and_nothing_else(tmp_path, suffix, error):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"old")

    def fail():
        with output(str(path)) as writer:
            writer.write(TEXT)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    "path", ["/proc/x", "/dev/null/x", "none/x", ".", "", "x" * 300, "/proc/1/mem/x"]
)
def test_an_output_that_cannot_be_created_is_refused_before_any_work(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CreateError, match=r"^cannot create "), output(path):
        pytest.fail("work began")
    assert os.listdir(tmp_path) == []


def test_a_long_name_that_the_system_takes_is_taken(tmp_path):
    assert written(tmp_path / ("x" * 255), b"a\n").read_bytes() == b"a\n"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    written(tmp_path / "link", b"new\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new\n"


def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o600)
    assert written(path, b"new\n").stat().st_mode & 0o777 == 0o600


def test_a_file_system_without_permissions_will_do(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"old")

    def refuse(*arguments):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    assert written(tmp_path / "x", b"new\n").read_bytes() == b"new\n"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("after", ["| cat", "> file"])
def test_dev_stdout_is_stdout_and_stays_what_it_is(tmp_path, name, after):
    before = os.lstat("/dev/stdout")
    done = cat(name, stdin=b"a\n", after=f"{after}; cat file 2> /dev/null", cwd=tmp_path)
    assert done.stdout == b"a\n"
    assert os.lstat("/dev/stdout").st_ino == before.st_ino


@pytest.mark.parametrize(
    ("name", "number"),
    [("/dev/stdout", 1), ("/dev/fd/1", 1), ("/proc/self/fd/1", 1), ("/dev/fd/3", 3)],
)
def test_what_others_write_to_an_open_file_stays_in_its_place(tmp_path, name, number):
    before, after = f"{{ echo before >&{number}", f"; echo after >&{number}; }} {number}> file"
    done = cat(name, stdin=b"a\n", before=before, after=after, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "file").read_bytes() == b"before\na\nafter\n"


@pytest.mark.parametrize("n", [1, 3_000_000])
@pytest.mark.parametrize("where", ["stdout", "file"])
def test_a_full_disk_is_one_line_and_74(n, where):
    target, after = ("-", "> /dev/full") if where == "stdout" else ("/dev/full", "")
    done = cat(target, stdin=b"x\n" * n, after=after)
    assert done.returncode == 74
    assert re.fullmatch(rb"synmt: cannot write \S+: No space left on device\n", done.stderr)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_a_file_size_limit_leaves_nothing_behind(tmp_path, suffix):
    data = os.urandom(30_000).hex().encode()
    done = cat(tmp_path / f"x{suffix}", before="ulimit -f 8", stdin=data)
    assert done.returncode == 74
    assert re.fullmatch(rb"synmt: cannot write .*: File too large\n", done.stderr)
    assert os.listdir(tmp_path) == []


@each_format
def test_a_file_size_limit_leaves_old_files_together(tmp_path, kind):
    names = [str(tmp_path / f"{name}.{kind}") for name in ("a", "b", "c")]
    for name in names:
        with open(name, "wb") as file:
            file.write(COMPRESS[kind](b"old"))

    def replaced():
        with together(names) as writers:
            for writer, size in zip(writers, (100, 9000, 100), strict=True):
                writer.write(os.urandom(size).hex().encode())

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(WriteError, match="too large"):
            replaced()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(tmp_path)) == [os.path.basename(name) for name in names]
    for name in names:
        with open(name, "rb") as file:
            assert DECOMPRESS[kind](file.read()) == b"old"


def test_what_is_complete_takes_no_more(tmp_path):
    def added():
        with output(str(tmp_path / "a")) as writer:
            writer.write(b"x\n")
            writer.complete()
            writer.complete()
            writer.write(b"y\n")

    with pytest.raises(WriteError):
        added()
    assert os.listdir(tmp_path) == []


def test_a_pipe_that_is_named_gets_each_record_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with output(str(tmp_path / "pipe"), line_buffered=True) as writer:
        writer.write(b"x\n")
        assert os.read(reader, 9) == b"x\n"
    with output(str(tmp_path / "pipe")) as writer:
        writer.write(b"x\n")
        with pytest.raises(BlockingIOError):
            os.read(reader, 9)
    assert os.read(reader, 9) == b"x\n"
    os.close(reader)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_a_pipe_that_is_named_has_all_records_before_an_error(tmp_path, suffix):
    """Nobody can take them for everything: after them, a compressed pipe has an error."""
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def fail():
        with output(str(pipe)) as writer:
            writer.write(b"x\n")
            writer.write(b"y\n")
            raise DataError("input", 3, "bad")

    with pytest.raises(DataError, match="bad"):
        fail()
    data = os.read(reader, 9999)
    os.close(reader)
    source = compression.decompressed(io.BufferedReader(io.BytesIO(data)))
    assert (source.readline(), source.readline()) == (b"x\n", b"y\n")
    if suffix:
        with pytest.raises(compression.Damaged, match="is cut"):
            source.read()
        with pytest.raises((EOFError, ValueError, lzma.LZMAError, zstd.ZstdError)):
            DECOMPRESS[suffix[1:]](data)
    else:
        assert source.read() == b""


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdout_has_all_records_before_an_error_by_any_name(run, name):
    done = run("filter", "-o", name, stdin=b"a b\nc\n\xff\n")
    assert (done.returncode, done.stdout) == (65, b"a b\nc\n")


def test_a_file_size_limit_on_stdout(tmp_path):
    done = cat("-", before="ulimit -f 8", stdin=TEXT, after="> out", cwd=tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (74, 1)
    kept = (tmp_path / "out").read_bytes()
    assert TEXT.startswith(kept)


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_closed_pipe_ends_silently(reader):
    done = cat("-", before="yes | head -c 20000000 |", after=f"| {reader}")
    assert done.stderr == b""
    endless = subprocess.run(
        [
            "bash",
            "-c",
            'yes | "$0" -c "$1" - | head -1; echo ${PIPESTATUS[1]}',
            sys.executable,
            CAT,
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (endless.stdout, endless.stderr) == (b"y\n141\n", b"")


def test_closed_standard_streams_are_errors_not_crashes(tmp_path):
    done = cat("-", stdin=b"a\n", after=">&-")
    assert (done.returncode, done.stderr) == (
        74,
        b"synmt: cannot write <stdout>: Bad file descriptor\n",
    )
    done = cat("-", after="<&-")
    assert (done.returncode, done.stdout) == (66, b"")
    assert done.stderr == b"synmt: cannot read <stdin>: Bad file descriptor\n"
    done = cat(tmp_path / "x", stdin=b"a\n", after=">&- 2>&-")
    assert (done.returncode, (tmp_path / "x").read_bytes()) == (0, b"a\n")
    assert cat("-", "none", after="2>&-").returncode == 66


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    """With stdout and stderr closed, the next file opened would be 1 or 2."""
    (tmp_path / "in").write_bytes(b"a\n")
    done = cat(tmp_path / "out", tmp_path / "in", tmp_path / "none", after="<&- >&- 2>&-")
    assert done.returncode == 66
    assert os.listdir(tmp_path) == ["in"]
    assert (tmp_path / "in").read_bytes() == b"a\n"


each_signal = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@each_signal
def test_a_signal_ends_a_stream_with_its_last_line_whole(number):
    line = "x" * 997 + "\n"
    with subprocess.Popen(["yes", line[:-1]], stdout=subprocess.PIPE) as yes:
        with start("-", stdin=yes.stdout) as child:
            out = b"".join(child.stdout.read(50_000) for _ in range(50))
            child.send_signal(number)
            rest, err = child.communicate(timeout=20)
        yes.kill()
    assert (child.returncode, err) == (128 + number, b"")
    assert (out + rest).replace(line.encode(), b"") == b""


def test_memory_does_not_grow_with_the_input():
    code = CAT.replace(
        "cli._leave(status)",
        "import resource, os\n"
        "os.write(2, b'%d' % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "cli._leave(status)",
    )
    peaks = []
    for megabytes in (2, 20):
        done = subprocess.run(
            [
                "bash",
                "-c",
                f'yes "a line of text" | head -c {megabytes}M | "$0" -c "$1" -',
                sys.executable,
                code,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=100,
            check=True,
        )
        peaks.append(int(done.stderr))
    assert peaks[1] - peaks[0] < 8 * 1024  # KiB


@each_signal
def test_a_reader_that_never_reads_cannot_keep_the_process_alive(number):
    """Its pipe is full and more is buffered: the end waits, but not for ever."""
    short = CAT.replace("signals.install()", "signals.GRACE = 0.5; signals.install()")
    with start("-", code=short) as child:
        child.stdin.write(b"x" * (2**16 - 1) + b"\n")
        time.sleep(0.5)
        child.stdin.write(b"y\n")
        time.sleep(0.3)
        began = time.monotonic()
        child.send_signal(number)
        assert child.wait(timeout=20) == 128 + number
        assert 0.4 < time.monotonic() - began < 5


def test_pressing_control_c_again_and_again_leaves_nothing_behind(tmp_path):
    for _ in range(2):
        with start(str(tmp_path / "x.gz")) as child:
            child.stdin.write(TEXT[:100_000])
            time.sleep(0.4)
            for _ in range(30):
                child.send_signal(signal.SIGINT)
                time.sleep(0.0005)
            _, err = child.communicate(timeout=20)
        assert (child.returncode, err) == (130, b"")
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["new/", "new/.", "old/"])
def test_a_name_of_a_folder_is_no_file(tmp_path, name):
    (tmp_path / "old").mkdir()
    with pytest.raises(CreateError, match=f"{name}: Is a directory"), output(f"{tmp_path}/{name}"):
        pass
    assert not (tmp_path / "new").exists()
