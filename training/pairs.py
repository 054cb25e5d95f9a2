"""Pairs of a query and the tools it needs, in batches for training, and the evaluation datasets, from the bundle that `prepare.py` wrote."""

import json
import math
from dataclasses import dataclass

import numpy

# The share of queries in a batch, by the prefix of their kind.
MIX = {"written": 0.45, "set": 0.17, "itself": 0.25, "wordnet": 0.13}
# In a batch, a dataset is weighted by its number of queries, but at most by this number.
MOST_OF_A_SET = 1200
# For each tool, one hard negative is chosen from its `NEAREST` most similar tools. Tools with a similarity above `SAME`
# count as duplicates and are not chosen.
NEAREST, SAME = 12, 0.93


@dataclass
class Batch:
    """Positions of queries and tools. The first tools are the correct answers, one for each query; the hard negatives follow."""

    queries: numpy.ndarray
    tools: numpy.ndarray
    """`also`: true where a tool of the batch is another correct answer to a query, or a duplicate of its tool."""
    also: numpy.ndarray
    """Fields of each tool that its query was made from, as bits."""
    hidden: numpy.ndarray


class Pairs:
    def __init__(self, folder):
        self.text = json.loads((folder / "text.json").read_text(encoding="utf-8"))
        self.arrays = numpy.load(folder / "tokens.npz")
        self.hides, self.gold, self.gold_starts = (self.arrays[name] for name in ("hides", "gold", "gold_starts"))
        # Tools for evaluation are not used for training, not even to count document frequencies.
        self.trained = numpy.nonzero(self.arrays["trained"])[0]
        self.siblings = {}
        for at in self.trained.tolist():
            self.siblings.setdefault(self.text["servers"][at], []).append(at)
        self.nearest = None
        general = [at for at in self.trained.tolist() if self.text["servers"][at].startswith("general/")]
        # The table is trained without general tools.
        self.general = numpy.array(general) if general else self.trained

    def find_nearest(self, vectors):
        """Stores the most similar tools of each tool, from the vectors of all tools."""
        import torch

        beside = [at for at in self.trained.tolist() if not self.text["servers"][at].startswith("wordnet")]
        beside = torch.tensor(beside, device=vectors.device)
        others = vectors[beside].half()
        found = []
        for start in range(0, len(vectors), 4096):
            cosines = vectors[start : start + 4096].half() @ others.T
            found.append(beside[cosines.masked_fill(cosines > SAME, -1).topk(min(NEAREST, len(beside)), 1).indices].cpu())
        self.nearest = torch.cat(found).numpy()

    def batches(self, size, seed, mix, least_of_a_set=0):
        rng = numpy.random.default_rng(seed)
        by_kind = {}
        for at, kind in enumerate(self.text["kinds"]):
            by_kind.setdefault(kind, []).append(at)
        pools = {}
        for begin in mix:
            kinds = [kind for kind in by_kind if kind.startswith(begin)]
            if kinds:
                sizes = numpy.array([weight(begin, len(by_kind[kind]), least_of_a_set) for kind in kinds], dtype=float)
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
            # What is similar to a general tool often serves the same requests, so it is no hard negative.
            general = numpy.array([self.text["kinds"][at].startswith("general") for at in queries])
            random = self.trained[rng.integers(len(self.trained), size=len(tools))]
            for at, other, is_general in zip(tools, random, general):
                near = self.siblings[self.text["servers"][at]]
                beside.append(near[rng.integers(len(near))] if len(near) > 1 and not is_general and not self.text["servers"][at].startswith("wordnet") else other)
            beside = [numpy.array(beside)]
            if self.nearest is not None:
                beside.append(numpy.where(general, self.general[rng.integers(len(self.general), size=len(tools))], self.nearest[tools, rng.integers(0, self.nearest.shape[1], len(tools))]))
            tools = numpy.concatenate([tools, *beside])
            hidden = numpy.concatenate([hidden, numpy.zeros(len(tools) - len(hidden), dtype=hidden.dtype)])
            places = {}
            for at, tool in enumerate(tools.tolist()):
                places.setdefault(tool, []).append(at)
            also = tools[None] == tools[: len(queries), None]
            for row in numpy.nonzero(last - first > 1)[0].tolist():
                for gold in self.gold[first[row] : last[row]].tolist():
                    also[row, places.get(gold, [])] = True
            numpy.fill_diagonal(also, False)
            yield Batch(queries, tools, also, hidden)


def weight(kind, queries, least_of_a_set):
    """The weight of a kind with this number of queries among those that begin alike."""
    return {"set": min(max(queries, least_of_a_set), MOST_OF_A_SET), "general": queries**0.5}.get(kind, queries)


def ndcg(ranked, gold, single):
    gain = sum(gold[at] / math.log2(2 + rank) for rank, at in enumerate(ranked[:10]) if at in gold)
    ideal = sorted(gold.values(), reverse=True)[: 1 if single else 10]
    return min(1.0, gain / sum(value / math.log2(2 + rank) for rank, value in enumerate(ideal)))


def measure(label, pairs, query_vectors, tool_vectors):
    """Computes nDCG@10 of a search with only the vectors, for each dataset, and the means over the public and the left-out datasets."""
    import torch

    found = {}
    for one in pairs.text["sets"]:
        if not one["queries"]:
            continue
        tools = torch.tensor(one["tools"])
        scores = query_vectors(one) @ tool_vectors(tools).T
        best = tools[scores.topk(min(10, len(tools)), dim=1).indices.cpu()].tolist()
        found[one["name"]] = sum(ndcg(row, dict(q["gold"]), q["any"]) for row, q in zip(best, one["queries"])) / len(best)
    public = [value for name, value in found.items() if not name.startswith("left:")]
    left = [value for name, value in found.items() if name.startswith("left:")]
    mean = lambda values: sum(values) / max(1, len(values))
    print(f"{label}: public {mean(public):.4f} left {mean(left):.4f} " + " ".join(f"{name[:12]} {value:.3f}" for name, value in found.items()), flush=True)
