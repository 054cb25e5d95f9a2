"""Splits text into pieces of a vocabulary, exactly as `toolcrib-embed` does.

The rules are documented in `crates/toolcrib-embed/src/split.rs` and `wordpiece.rs`. A table works only if both implementations split text in
the same way. Therefore `golden.py` writes test cases with this module, and a test of `toolcrib-embed` reads them.
"""

import unicodedata

LONGEST_RUN = 256
LONGEST = 64
MOST_PIECES = 512
# Maximum number of vocabulary pieces in a query and in each field of a tool.
QUERY_TOKENS = 64
FIELD_TOKENS = [32, 192, 96, 192, 16]
PARAMETER_NAMES = FIELD_TOKENS[2]

# Marks the start of a camel-case part. This control character is safe to use, because in a text it only separates
# words.
HUMP = "\x1f"
# The ranges of ideographs that BERT treats as separate words. They include Han, but neither kana nor Hangul.
IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F))
# Letters in circles and squares. Their Unicode category is symbol, but Rust counts them as letters, because they have
# the alphabetic property.
FRAMED = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def within(ranges, c):
    return any(first <= ord(c) <= last for first, last in ranges)


def begins_part(before, here, following):
    if not here.isupper():
        return False
    return before.islower() or unicodedata.category(before)[0] == "N" or (before.isupper() and following.islower())


def folded(text):
    """The characters of a text in lower case, without accents, and with a mark before each camel-case part."""
    parted = []
    before = " "
    for here, following in zip(text, text[1:] + " "):
        if begins_part(before, here, following):
            parted.append(HUMP)
        parted.append(" " if here == HUMP else here)
        before = here
    # Characters are lower-cased one by one, because `str.lower` on the entire text would treat a final sigma
    # differently.
    lower = "".join(c.lower() for c in parted)
    return [c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn"]


def runs(text):
    """Runs of letters and digits, each a list of its camel-case parts: `getHTTPServer now` is `[get, http, server]` and `[now]`."""
    found, run, length = [], [""], 0

    def end():
        nonlocal run, length
        if parts := [part[:LONGEST] for part in run if part]:
            found.append(parts)
        run, length = [""], 0

    for c in folded(text):
        if c == HUMP:
            run.append("")
        elif within(IDEOGRAPHS, c):
            end()
            found.append([c])
        elif c.isascii() and c.isalnum() or not c.isascii() and (unicodedata.category(c)[0] in "LNM" or within(FRAMED, c)):
            if length < LONGEST_RUN:
                run[-1] += c
                length += 1
        else:
            end()
    end()
    return found


def words(text):
    return [word for run in runs(text) for word in run]


class Wordpiece:
    def __init__(self, entries):
        self.rows = {entry: row for row, entry in enumerate(entries)}
        self.known = {}

    def pieces_of(self, word):
        """The rows of one word. Cached, because words are repeated."""
        if word not in self.known:
            self.known[word] = self.read(word)
        return self.known[word]

    def read(self, word):
        found = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                row = self.rows.get(("##" if start else "") + word[start:end])
                if row is not None:
                    found.append(row)
                    start = end
                    break
            else:
                start += 1
        return found

    def pieces(self, text, most=MOST_PIECES):
        """The rows of a text. The row of a phrase follows that of its second word. `GitHub` is one word if the vocabulary contains it."""
        found = []
        before = ""
        for run in runs(text):
            whole = "".join(run)
            for word in [whole] if len(run) > 1 and whole in self.rows else run:
                found += self.pieces_of(word)
                phrase = self.rows.get(f"{before} {word}")
                if phrase is not None:
                    found.append(phrase)
                before = word
            if len(found) >= most:
                break
        return found[:most]

    def pieces_of_field(self, texts, most):
        """The rows of a field with several texts, such as parameter names. No phrase spans two texts."""
        found = []
        for text in texts:
            found += self.pieces(text, most - len(found))
            if len(found) >= most:
                break
        return found
