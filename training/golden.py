"""Writes the test cases on which `toolcrib-embed` must agree with `text.py`.

Each line of `texts.txt` gives three cases: the text unchanged, the text in upper case, and an identifier made of its capitalised words
without spaces. In these lines, `\\n`, `\\r`, `\\t` and `\\uXXXX` are escapes. Further cases are long texts, and lists of parameter names of
one tool.
"""

import json
import re
from pathlib import Path

from text import PARAMETER_NAMES, Wordpiece

GOLDEN = Path(__file__).parent.parent / "crates/toolcrib-embed/tests/golden"
ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|([nrt]))")


def unescaped(line):
    return ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else {"n": "\n", "r": "\r", "t": "\t"}[found[2]], line)


def main():
    entries = (GOLDEN / "vocabulary.txt").read_text("utf-8").removesuffix("\n").split("\n")
    wordpiece = Wordpiece(entries)
    texts = {}
    for line in (GOLDEN / "texts.txt").read_text("utf-8").removesuffix("\n").split("\n"):
        text = unescaped(line)
        identifier = "".join(word[0].upper() + word[1:] for word in text.split())
        for case in (text, text.upper(), identifier):
            texts[case] = [entries[row] for row in wordpiece.pieces(case)]
    # Texts that exceed the limits for pieces, runs and camel-case parts.
    long = ["send message " * 400, "搜索" * 400, "Issue" * 60, "Über" * 80, "aB" * 150]
    long += [letter * 250 + "GetUrls then" for letter in "aж"]
    for text in long:
        texts[text] = [entries[row] for row in wordpiece.pieces(text)]
    with (GOLDEN / "pieces.jsonl").open("w", encoding="utf-8") as file:
        for text, pieces in texts.items():
            file.write(json.dumps({"text": text, "pieces": pieces}) + "\n")
    # Fields with several texts, in which no phrase may span two texts. Otherwise the last word of one text and the
    # first word of the next would form `pull request`, `in progress` and `send message`.
    fields = [["pull", "request"], ["request", "in", "progress_url"], ["userSend", "messageId", "pull_request"], ["send", "", "message"]]
    fields += [["send_message"] * 40, [*["page"] * 95, "pull_request"], ["files " * 200, "more"]]
    with (GOLDEN / "fields.jsonl").open("w", encoding="utf-8") as file:
        for names in fields:
            pieces = [entries[row] for row in wordpiece.pieces_of_field(names, PARAMETER_NAMES)]
            file.write(json.dumps({"names": names, "pieces": pieces}) + "\n")
    print(f"{len(texts)} texts, {len(fields)} fields")


if __name__ == "__main__":
    main()
