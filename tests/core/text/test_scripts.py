"""Text without spaces between words is told from all other text."""

import pytest

from synmt_cli.core.text.scripts import CHINESE, JAPANESE, LINES, Sample, misread, unspaced
from synmt_cli.core.text.tokenizers import TOKENIZERS

ZH = "雖然美國的許多數字化轉型都是史無前例的，但權力的和平轉移卻存在先例。"
JA = "彼は昨日、新しいコンピューターを買いに東京へ行きました。"
TH = "การเปลี่ยนผ่านอำนาจอย่างสันตินั้นก็ไม่ใช่เรื่องใหม่ ผู้ช่วยพิเศษเขียนลงบล็อกเมื่อวันจันทร์"
MY = "မြန်မာနိုင်ငံသည် အရှေ့တောင်အာရှတွင် ရှိသော နိုင်ငံဖြစ်သည်"
DE = "Die Donaudampfschifffahrtsgesellschaft fährt heute nicht."


@pytest.mark.parametrize(
    ("lines", "tokenize"),
    [
        ([ZH], "zh"),
        (["你好 我是小明 很高兴认识你", "我们走吧"] * 4, "zh"),  # subtitles: spaces between clauses
        ([ZH, "約翰·史密斯喜歡の這個字。"] * 3, "zh"),  # a letter of another script
        (["他在 Apple 公司负责设计新产品，常常用 Python 编写测试程序。"] * 9, "zh"),
        ([JA], "char"),
        ([TH], "char"),
        ([MY] * 3, "char"),
        ([*[DE] * 4, *[ZH] * 36], "zh"),
    ],
)
def test_text_without_spaces_is_known_with_the_tokenizer_that_suits_it(lines, tokenize):
    assert unspaced(lines).tokenize == tokenize


@pytest.mark.parametrize(
    "lines",
    [
        [DE] * 9,
        ["”Vaikka Yhdysvaltojen siirtyminen digitaaliseen aikaan onkin ennenkuulumatonta”"] * 9,
        ["كتبت كوري شولمان, المساعدة الخاصة لأوباما في تدوينة نشرتها يوم الإثنين"] * 9,
        ["संयुक्त राज्य अमेरिका में ज्यादातर डिजिटल संक्रमण अभूतपूर्व ढंग से हुआ है।"] * 9,
        ["오바마 대통령 특별 보좌관은 월요일 미국에서 디지털 전환의 대부분은 유례가 없다."] * 9,
        ["大統領 특별 보좌관은 月曜日 미국에서 디지털 轉換의 대부분은 유례가 없다."] * 9,
        ["Đây là một câu tiếng Việt có dấu cách giữa các âm tiết."] * 9,
        ["雖然 美國 的 許多 數字化 轉型 都 是 史無前例 的 ， 但 權力"] * 9,  # split into words
        ["彼 は 昨日 新しい コンピューター を 買い に 東京 へ 行き まし た 。"] * 9,
        ["การ เปลี่ยน ผ่าน อำนาจ อย่าง สันติ นั้น ก็ ไม่ ใช่ เรื่อง ใหม่"] * 9,
        ["မြန်မာ နိုင်ငံ သည် အရှေ့ တောင် အာရှ တွင် ရှိ သော နိုင်ငံ"] * 9,
        ["狗", "你好", "中国人民", "学生"] * 20,  # a list of words
        ["คน", "หมา", "ภาษาไทย"] * 20,
        ["https://www.example.org/a/very/long/path?with=parameters"] * 9,
        ["https://例え.jp/道/東京都"] * 9,
        [*[DE] * 40, *[ZH] * 4],
        [DE] * 40 + [ZH * 5000],  # one line, however long, is one line
        [ZH[:8]],  # too little to tell
        ["12345678901234567890 !!! ...", "", "  "],
        [],
    ],
)
def test_other_text_is_not_taken_for_it(lines):
    assert unspaced(lines) is None


def test_a_tokenizer_misreads_it_only_if_spaces_make_its_words():
    by_spaces = {name for name in TOKENIZERS if misread([ZH] * 3, name) == CHINESE}
    assert by_spaces == {"13a", "none", "intl"}
    assert misread([JA] * 3, "13a") == JAPANESE
    assert misread([DE] * 3, "13a") is None


@pytest.mark.parametrize("n", [0, 1, LINES - 1, LINES, LINES + 1, 2 * LINES + 1, 11 * LINES])
def test_a_sample_is_spread_over_all_lines(n):
    sample = Sample()
    for number in range(n):
        sample.add(str(number))
    taken = [*map(int, sample.lines)]
    assert min(n, LINES // 2) <= len(taken) <= LINES
    step = taken[1] if n > 1 else 1
    assert taken == [*range(0, n, step)]


def test_the_end_of_a_long_text_counts_too():
    sample = Sample()
    for line in [DE] * LINES + [ZH] * 9 * LINES:
        sample.add(line)
    assert sample.unspaced() == CHINESE
