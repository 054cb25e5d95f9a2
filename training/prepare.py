"""Reads the data, chooses the vocabulary, and writes one bundle that is the only input of `train.py`.

The vocabulary is the teacher's own, without its unused entries. Two kinds of entries are added: words of tools that the teacher splits into
pieces (`webhook`, `kubernetes`), and pairs of words that have a meaning together (`pull request`). The score of a pair is the square root of
its count, times the logarithm of how much more often the two words occur together than by chance.
"""

import argparse
import json
import math
from collections import Counter
from pathlib import Path

import numpy

import data
from data import spaced
from text import FIELD_TOKENS, QUERY_TOKENS, Wordpiece, runs

# Number of rows. Each row has 256 bytes and two scales. Including the text of the vocabulary, the table has just under
# ten million bytes.
ROWS = 36_600
PHRASES = 3_000
STOP = set("a an and are as at be by can do for from how i in is it its me my of on or that the this to was what when which with you your not if will has have all any each only no one".split())


def vocabulary(corpus, own):
    kept = [entry for entry in own if not (entry.startswith("[") and entry.endswith("]"))]
    known = set(kept)
    single, pairs, whole = Counter(), Counter(), Counter()
    # Words are not taken from parameter names, because those often join several words without a separator.
    prose = [(tool.description, False) for tool in corpus.tools if tool.trained and tool.source != "wordnet"]
    prose += [(query.text, True) for query in corpus.queries if query.kind.startswith(("written", "set"))]
    names = [(spaced(tool.name), False) for tool in corpus.tools if tool.trained and tool.source != "wordnet"]
    for text, asked in prose + names:
        # Words and pairs count once per text, because `lift` below relates the counts to the number of texts.
        found = runs(text)
        plain = [word for run in found for word in run]
        single.update(set(plain))
        pairs.update({(a, b) for a, b in zip(plain, plain[1:])})
        whole.update({run[0]: 8 if asked else 1 for run in found if len(run) == 1})
        # A camel-case word that occurs in queries, such as `GitHub` or `OAuth`, can become an entry. One that occurs
        # only in tools, such as `accountId`, cannot.
        whole.update({"".join(run): 8 for run in found if len(run) > 1 and asked})
    total = len(prose) + len(names)
    fresh = [(count * (len(word) - 2), word) for word, count in whole.items() if word not in known and word.isascii() and word.isalpha() and 3 <= len(word) <= 20 and count >= 16]
    fresh = sorted(fresh, reverse=True)[: ROWS - PHRASES - len(kept)]
    scored = []
    for (a, b), count in pairs.items():
        if count < 40 or a == b or a in STOP or b in STOP or not (a.isalpha() and b.isalpha() and a.isascii() and b.isascii()) or min(len(a), len(b)) < 2:
            continue
        lift = count * total / (single[a] * single[b])
        if lift > 3:
            scored.append((count**0.5 * math.log(lift), f"{a} {b}"))
    scored.sort(reverse=True)
    return kept + sorted(word for _, word in fresh) + sorted(phrase for _, phrase in scored[:PHRASES])


def ragged(lists):
    starts = numpy.zeros(len(lists) + 1, dtype=numpy.int64)
    numpy.cumsum([len(item) for item in lists], out=starts[1:])
    flat = numpy.fromiter((token for item in lists for token in item), dtype=numpy.uint16, count=int(starts[-1]))
    return flat, starts.astype(numpy.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gathered", type=Path, required=True, help="what gather.py wrote")
    parser.add_argument("--data", type=Path, required=True, help="the public sets, a folder each")
    parser.add_argument("--written", type=Path, default=Path(__file__).parent / "queries")
    parser.add_argument("--wordnet", type=Path, help="WordNet 3.0's folder of data.* files; only the table is trained with it")
    parser.add_argument("--general", type=Path, help="the folder of general tools; only the encoder is trained with it")
    parser.add_argument("--teacher", type=Path, required=True, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--without-sets", action="store_true", help="train on no public set, for figures on unseen data")
    parser.add_argument("--leave-out", action="store_true", help="keep one server in six for measuring")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    trained = [] if arguments.without_sets else data.TRAINABLE
    corpus = data.read(arguments.gathered, arguments.data, arguments.written, arguments.general, arguments.wordnet, trained, arguments.leave_out)
    entries = vocabulary(corpus, (arguments.teacher / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1])
    pieces = Wordpiece(entries)
    arrays = {}
    for field, most in enumerate(FIELD_TOKENS):
        arrays[f"field{field}"], arrays[f"field{field}_starts"] = ragged([pieces.pieces_of_field(tool.texts()[field], most) for tool in corpus.tools])
    arrays["queries"], arrays["queries_starts"] = ragged([pieces.pieces(query.text, QUERY_TOKENS) for query in corpus.queries])
    arrays["hides"] = numpy.array([sum(1 << at for at in query.hides) for query in corpus.queries], dtype=numpy.uint8)
    arrays["gold"], arrays["gold_starts"] = ragged_wide([query.gold for query in corpus.queries])
    arrays["trained"] = numpy.array([tool.trained for tool in corpus.tools], dtype=bool)
    text = {
        "entries": entries,
        "parts": [tool.parts() for tool in corpus.tools],
        "servers": [f"{tool.source}/{tool.server}" for tool in corpus.tools],
        "queries": [query.text for query in corpus.queries],
        "kinds": [query.kind for query in corpus.queries],
        "filler": corpus.filler,
        "unservable": corpus.unservable,
        "sets": [{"name": s.name, "tools": s.tools, "queries": [{**q, "tokens": pieces.pieces(q["text"], QUERY_TOKENS), "gold": list(q["gold"].items())} for q in s.queries]} for s in corpus.sets],
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    numpy.savez_compressed(arguments.out / "tokens.npz", **arrays)
    data.write_left(corpus, arguments.out)
    (arguments.out / "text.json").write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")
    print(json.dumps({"tools": len(corpus.tools), "queries": len(corpus.queries), "entries": len(entries), "kinds": Counter(q.kind for q in corpus.queries)}))


def ragged_wide(lists):
    starts = numpy.zeros(len(lists) + 1, dtype=numpy.int64)
    numpy.cumsum([len(item) for item in lists], out=starts[1:])
    return numpy.array([at for item in lists for at in item], dtype=numpy.int32), starts.astype(numpy.int32)


if __name__ == "__main__":
    main()
