"""Writes the test cases on which the encoder of `toolcrib-embed` must agree with the original model.

The reference is the model in single precision, in numpy, with the tokenizer of the package `tokenizers`. The cases are valid for one file of
int8 weights, whose id they contain, so they must be written again when the weights change.
"""

import argparse
import json
import math
import struct
from pathlib import Path

import numpy
from tokenizers import BertWordPieceTokenizer

from write_encoder import MAGIC, NUMBERS, Model

GOLDEN = Path(__file__).parent.parent / "crates/toolcrib-embed/tests/golden/encoder.json"
WEIGHTS = Path(__file__).parent.parent / "crates/toolcrib/weights/encoder.bin"
# Number of components of each vector in the file.
COMPONENTS = 8

# The parts of a text are separated by `|` here. The text itself has a newline in these places.
TEXTS = [
    "send_message|Sends a message to a channel.|channel text thread_ts",
    "How do I delete every file in a folder?",
    "Résumé of the café, naïve ÜBERSETZUNG — “quoted” … and 100%",
    "搜索 GitHub 上的 issues|查询天气|list of tools",
    "Найти файлы в папке|поиск",
    "파일을 삭제합니다|ファイルを検索する",
    "नमस्ते दुनिया|مرحبا بالعالم|שלום עולם",
    "send📨mail 👩‍💻 for (let i = 0; i < n; i++) { x[i] ^= ~y; }",
    "don't [SEP] mail@example.com $5.00|C:\\Users\\x\\y.txt|https://example.com/a?b=c&d=%20",
    "",
    "| |a",
    "zzzzqqqqxxxx " + "x" * 101 + " " + "y" * 100,
    "get_weather|" + "Returns the current weather, with temperature, wind and humidity, for a city. " * 8 + "|city units",
    "one two|" + "very long text " * 300 + "|the end",
]
MAX_TOKENS = [112, 16, 5]


def erf(values):
    return numpy.frompyfunc(math.erf, 1, 1)(values).astype("f4")


def normalised(vector):
    return vector / max(float(numpy.linalg.norm(vector)), 1e-12)


class Reference:
    """The model in single precision."""

    def __init__(self, model, heads):
        self.model = model
        self.heads = heads
        self.positions = model.positions()

    def norm(self, name, states):
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.model[f"{name}.weight"] + self.model[f"{name}.bias"]

    def linear(self, name, states):
        return states @ self.model[f"{name}.weight"].T + self.model[f"{name}.bias"]

    def states(self, ids):
        """Returns the final state of each token."""
        states = self.model["embeddings.word_embeddings.weight"][ids] + self.positions[: len(ids)]
        states = self.norm("embeddings.LayerNorm", states)
        for layer in range(self.model.layers()):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self.linear(f"{at}.attention.self.{name}", states).reshape(len(ids), self.heads, -1).transpose(1, 0, 2)
                for name in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 2, 1) / numpy.float32(math.sqrt(query.shape[-1]))
            scores = numpy.exp(scores - scores.max(-1, keepdims=True))
            attended = (scores / scores.sum(-1, keepdims=True)) @ value
            attended = attended.transpose(1, 0, 2).reshape(len(ids), -1)
            states = self.norm(f"{at}.attention.output.LayerNorm", states + self.linear(f"{at}.attention.output.dense", attended))
            inner = self.linear(f"{at}.intermediate.dense", states)
            inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
            states = self.norm(f"{at}.output.LayerNorm", states + self.linear(f"{at}.output.dense", inner))
        return states


class Tokenizer:
    def __init__(self, entries):
        vocabulary = {entry: at for at, entry in enumerate(entries)}
        self.tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
        self.start, self.end = self.tokenizer.token_to_id("[CLS]"), self.tokenizer.token_to_id("[SEP]")
        # In `toolcrib-embed`, spellings of special tokens in the text have no special meaning.
        self.tokenizer._tokenizer.encode_special_tokens = True

    def tokens(self, text, max_tokens):
        """Returns the ids and byte ranges of the first tokens, without the two special ones."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        offset = [0]
        for character in text:
            offset.append(offset[-1] + len(character.encode()))
        ranges = [(offset[start], offset[end]) for start, end in encoding.offsets]
        return encoding.ids[: max_tokens - 2], ranges[: max_tokens - 2]


def case(reference, tokenizer, marked, max_tokens):
    text = marked.replace("|", "\n")
    ids, ranges = tokenizer.tokens(text, max_tokens)
    states = reference.states([tokenizer.start, *ids, tokenizer.end])
    first = lambda rows: [round(float(value), 5) for value in normalised(rows.sum(0))[:COMPONENTS]]
    parts, start = [], 0
    for part in marked.split("|"):
        end = start + len(part.encode())
        inside = [at + 1 for at, range in enumerate(ranges) if start <= range[0] and range[1] <= end]
        parts.append({"start": start, "end": end, "vector": first(states[inside]) if inside else None})
        start = end + 1
    return {"text": text, "max_tokens": max_tokens, "ids": ids, "vector": first(states), "parts": parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the model that write_encoder.py read: a .safetensors file, or the folder of a model")
    parser.add_argument("--vocab", type=Path, required=True, help="the vocab.txt of the model")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="the file that write_encoder.py wrote")
    parser.add_argument("--out", type=Path, default=GOLDEN)
    arguments = parser.parse_args()
    with arguments.weights.open("rb") as file:
        header = file.read(64)
    name, heads = header[48:64].hex(), struct.unpack_from(NUMBERS, header, len(MAGIC))[2]
    model = Model(arguments.model, arguments.vocab)
    reference, tokenizer = Reference(model, heads), Tokenizer(model.entries)
    cases = [case(reference, tokenizer, text, max_tokens) for text in TEXTS for max_tokens in MAX_TOKENS]
    lines = ",\n".join(json.dumps(case) for case in cases)
    arguments.out.write_text(f'{{"id": "{name}", "cases": [\n{lines}\n]}}\n', "utf-8")
    print(f"{len(cases)} cases for the weights {name}")


if __name__ == "__main__":
    main()
