"""Trains teacher and table from the bundle that `prepare.py` wrote, measures both, and writes the table.

Uses a GPU if there is one. Seeds are fixed, but a GPU does not add numbers in a fixed order, so the figures of two runs differ in the third
decimal place.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

from table import FIELDS, Ragged, Table, train
from teacher import QUERY_TOKENS, TOOL_TOKENS, Teacher

DIMS = 256
# The share of queries in a batch, by the prefix of their kind.
MIX = {"written": 0.45, "set": 0.17, "itself": 0.25, "wordnet": 0.13}
# In a batch, a dataset is weighted by its number of queries, but at most by this number.
MOST_OF_A_SET = 1200
# For each tool, one hard negative is chosen from its `NEAREST` most similar tools. Tools with a similarity above `SAME`
# count as duplicates and are not chosen.
NEAREST, SAME = 12, 0.93


@dataclass
class Batch:
    queries: torch.Tensor
    tools: torch.Tensor
    labels: torch.Tensor
    """`also`: true where a tool of the batch is another correct answer to a query, or a duplicate of its tool."""
    also: torch.Tensor
    hidden: torch.Tensor


class Corpus:
    def __init__(self, folder, device):
        self.text = json.loads((folder / "text.json").read_text(encoding="utf-8"))
        arrays = numpy.load(folder / "tokens.npz")
        self.fields = [Ragged(arrays[f"field{at}"], arrays[f"field{at}_starts"], device) for at in range(FIELDS)]
        self.queries = Ragged(arrays["queries"], arrays["queries_starts"], device)
        self.hides, self.gold, self.gold_starts = arrays["hides"], arrays["gold"], arrays["gold_starts"]
        self.counts = numpy.bincount(arrays["queries"], minlength=len(self.text["entries"])) * 2.0
        # Tools for evaluation are not used for training, not even to count document frequencies.
        self.trained = numpy.nonzero(arrays["trained"])[0]
        for at in range(FIELDS):
            flat, starts = arrays[f"field{at}"], arrays[f"field{at}_starts"]
            kept = numpy.repeat(arrays["trained"], numpy.diff(starts))
            self.counts += numpy.bincount(flat[kept], minlength=len(self.text["entries"]))
        self.siblings = {}
        for at in self.trained.tolist():
            self.siblings.setdefault(self.text["servers"][at], []).append(at)
        self.nearest = None
        self.device = device

    def teach(self, teacher):
        """Stores the teacher's vector of every text, and the tools that are most similar to each tool."""
        self.taught_tools = teacher.embed(self.text["prose"], TOOL_TOKENS)
        self.taught_queries = teacher.embed(self.text["queries"], QUERY_TOKENS)
        vectors = self.taught_tools.float()
        beside = [at for at in self.trained.tolist() if not self.text["servers"][at].startswith("wordnet")]
        beside = torch.tensor(beside, device=self.device)
        found = []
        for start in range(0, len(vectors), 4096):
            cosines = vectors[start : start + 4096] @ vectors[beside].T
            found.append(beside[cosines.masked_fill(cosines > SAME, -1).topk(min(NEAREST, len(beside)), 1).indices].cpu())
        self.nearest = torch.cat(found).numpy()

    def batches(self, size, seed, mix):
        rng = numpy.random.default_rng(seed)
        by_kind = {}
        for at, kind in enumerate(self.text["kinds"]):
            by_kind.setdefault(kind, []).append(at)
        pools = {}
        for begin in mix:
            kinds = [kind for kind in by_kind if kind.startswith(begin)]
            if kinds:
                sizes = numpy.array([min(len(by_kind[kind]), MOST_OF_A_SET if begin == "set" else 10**9) for kind in kinds], dtype=float)
                pools[begin] = ([numpy.array(by_kind[kind]) for kind in kinds], sizes / sizes.sum())
        shares = numpy.array([mix[begin] for begin in pools])
        while True:
            counts = rng.multinomial(size, shares / shares.sum())
            picked = []
            for (kinds, sizes), count in zip(pools.values(), counts):
                for kind, each in zip(kinds, rng.multinomial(count, sizes)):
                    picked.append(kind[rng.integers(0, len(kind), each)])
            queries = numpy.concatenate(picked)
            first, last = self.gold_starts[queries], self.gold_starts[queries + 1]
            tools = self.gold[first + (rng.random(len(queries)) * (last - first)).astype(int)]
            hidden = self.hides[queries]
            beside = []
            for at in tools:
                near = self.siblings[self.text["servers"][at]]
                beside.append(near[rng.integers(len(near))] if len(near) > 1 and not self.text["servers"][at].startswith("wordnet") else self.trained[rng.integers(len(self.trained))])
            beside = [numpy.array(beside)]
            if self.nearest is not None:
                beside.append(self.nearest[tools, rng.integers(0, self.nearest.shape[1], len(tools))])
            tools = numpy.concatenate([tools, *beside])
            hidden = numpy.concatenate([hidden, numpy.zeros(len(tools) - len(hidden), dtype=hidden.dtype)])
            places = {}
            for at, tool in enumerate(tools.tolist()):
                places.setdefault(tool, []).append(at)
            rows, columns = [], []
            for row in numpy.nonzero(last - first > 1)[0].tolist():
                for gold in self.gold[first[row] : last[row]].tolist():
                    columns.extend(places.get(gold, []))
                    rows.extend([row] * len(places.get(gold, [])))
            to = lambda array: torch.from_numpy(numpy.asarray(array).astype("int64")).to(self.device, non_blocking=True)
            tools, labels = to(tools), torch.arange(len(queries), device=self.device)
            also = tools.unsqueeze(0) == tools[: len(queries)].unsqueeze(1)
            also[to(rows), to(columns)] = True
            also[labels, labels] = False
            yield Batch(to(queries), tools, labels, also, to(hidden))


def ndcg(ranked, gold, single):
    gain = sum(gold[at] / math.log2(2 + rank) for rank, at in enumerate(ranked[:10]) if at in gold)
    ideal = sorted(gold.values(), reverse=True)[: 1 if single else 10]
    return min(1.0, gain / sum(value / math.log2(2 + rank) for rank, value in enumerate(ideal)))


def measure(label, corpus, query_vectors, tool_vectors):
    """Computes nDCG@10 of a search with only the vectors, for each dataset, and the means over the public and the left-out datasets."""
    found = {}
    for one in corpus.text["sets"]:
        if not one["queries"]:
            continue
        tools = torch.tensor(one["tools"], device=corpus.device)
        scores = query_vectors(one) @ tool_vectors(tools).T
        best = tools[scores.topk(min(10, len(tools)), dim=1).indices].tolist()
        found[one["name"]] = sum(ndcg(row, dict(q["gold"]), q["any"]) for row, q in zip(best, one["queries"])) / len(best)
    public = [value for name, value in found.items() if not name.startswith("left:")]
    left = [value for name, value in found.items() if name.startswith("left:")]
    mean = lambda values: sum(values) / max(1, len(values))
    print(f"{label}: public {mean(public):.4f} left {mean(left):.4f} " + " ".join(f"{name[:12]} {value:.3f}" for name, value in found.items()), flush=True)


def measure_table(label, corpus, table):
    def queries(one):
        flat = [token for q in one["queries"] for token in q["tokens"]]
        starts = numpy.cumsum([0] + [len(q["tokens"]) for q in one["queries"]])
        ragged = Ragged(numpy.array(flat, dtype="int32"), starts, corpus.device)
        return table.query(ragged, torch.arange(len(one["queries"]), device=corpus.device))

    with torch.no_grad():
        measure(label, corpus, queries, lambda at: table.tool(corpus.fields, at))


def measure_teacher(label, corpus, teacher):
    embedded = lambda at: teacher.embed([corpus.text["prose"][i] for i in at.tolist()], TOOL_TOKENS).float()
    measure(label, corpus, lambda one: teacher.embed([q["text"] for q in one["queries"]], QUERY_TOKENS).float(), embedded)


def initial_vectors(corpus, teacher):
    """The initial vectors. The teacher embeds each entry, and the vectors are reduced to 256 principal components and weighted by inverse frequency."""
    entries = [entry.removeprefix("##") for entry in corpus.text["entries"]]
    vectors = teacher.embed(entries, 16).float()
    vectors = vectors - vectors.mean(0)
    _, _, directions = torch.linalg.svd(vectors, full_matrices=False)
    vectors = vectors @ directions[:DIMS].T
    vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-6)
    share = torch.from_numpy(corpus.counts / corpus.counts.sum()).float().to(corpus.device)
    return vectors * (1e-3 / (1e-3 + share)).unsqueeze(1)


def quantised(table):
    """Rows as signed bytes, each with a scale for queries and one for tools."""
    rows = table.rows.detach()
    most = rows.abs().amax(1).clamp(min=1e-12)
    state = {
        "rows": (rows / most.unsqueeze(1) * 127).round().to(torch.int8),
        "asked": table.asked.detach().exp() * most / 127,
        "told": table.told.detach().exp() * most / 127,
        "fields": table.fields.detach(),
    }
    return {key: value.cpu().numpy() for key, value in state.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teacher-steps", type=int, default=350)
    parser.add_argument("--teacher-batch", type=int, default=512)
    parser.add_argument("--average", type=float, default=0.6)
    parser.add_argument("--measure-teacher", action="store_true")
    parser.add_argument("--steps", type=int, default=2300)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--share", type=float, default=0.6)
    arguments = parser.parse_args()
    torch.manual_seed(6)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arguments.out.mkdir(parents=True, exist_ok=True)
    clock = time.time()
    corpus = Corpus(arguments.bundle, device)
    teacher = Teacher(arguments.teacher, device)
    mix = {kind: share for kind, share in MIX.items() if kind != "wordnet"}
    before = teacher.tune(corpus.text, corpus.batches(arguments.teacher_batch, 6, mix), arguments.teacher_steps)
    print(f"teacher tuned, {time.time() - clock:.0f} s", flush=True)
    teacher.average(before, arguments.average)
    if arguments.measure_teacher:
        measure_teacher(f"teacher averaged {arguments.average}", corpus, teacher)
    corpus.teach(teacher)
    start = initial_vectors(corpus, teacher)
    torch.manual_seed(6)
    print(f"embedded, {time.time() - clock:.0f} s", flush=True)
    table = Table(start).to(device)
    train(table, corpus, corpus.batches(arguments.batch, 7, MIX), arguments.steps, arguments.rate, arguments.share)
    measure_table("table", corpus, table)
    print(f"fields {[round(weight, 2) for weight in table.fields.tolist()]}, {time.time() - clock:.0f} s", flush=True)
    numpy.savez(arguments.out / "table.npz", entries=numpy.array("\n".join(corpus.text["entries"])), **quantised(table))


if __name__ == "__main__":
    main()
