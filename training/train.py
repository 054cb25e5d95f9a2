"""Trains teacher and table from the bundle that `prepare.py` wrote, measures both, and writes the table.

Uses a GPU if there is one. Seeds are fixed, but a GPU does not add numbers in a fixed order, so the figures of two runs differ in the third
decimal place.
"""

import argparse
import time
from pathlib import Path

import numpy
import torch

from data import prose
from pairs import MIX, Batch, Pairs, measure
from table import FIELDS, Ragged, Table, train
from teacher import QUERY_TOKENS, TOOL_TOKENS, Teacher

DIMS = 256

class Corpus(Pairs):
    """The pairs, with all texts split into entries of the vocabulary."""

    def __init__(self, folder, device):
        super().__init__(folder)
        arrays = self.arrays
        self.text["prose"] = [prose(*parts) for parts in self.text["parts"]]
        self.fields = [Ragged(arrays[f"field{at}"], arrays[f"field{at}_starts"], device) for at in range(FIELDS)]
        self.queries = Ragged(arrays["queries"], arrays["queries_starts"], device)
        self.counts = numpy.bincount(arrays["queries"], minlength=len(self.text["entries"])) * 2.0
        for at in range(FIELDS):
            flat, starts = arrays[f"field{at}"], arrays[f"field{at}_starts"]
            kept = numpy.repeat(arrays["trained"], numpy.diff(starts))
            self.counts += numpy.bincount(flat[kept], minlength=len(self.text["entries"]))
        self.device = device

    def teach(self, teacher):
        """Stores the teacher's vector of every text, and the tools that are most similar to each tool."""
        self.taught_tools = teacher.embed(self.text["prose"], TOOL_TOKENS)
        self.taught_queries = teacher.embed(self.text["queries"], QUERY_TOKENS)
        self.find_nearest(self.taught_tools.float())

    def on_device(self, size, seed, mix):
        """Batches whose arrays are tensors on the device."""
        to = lambda array: torch.from_numpy(array.astype("bool" if array.dtype == bool else "int64")).to(self.device, non_blocking=True)
        for batch in self.batches(size, seed, mix):
            yield Batch(to(batch.queries), to(batch.tools), to(batch.also), to(batch.hidden))


def measure_table(label, corpus, table):
    def queries(one):
        flat = [token for q in one["queries"] for token in q["tokens"]]
        starts = numpy.cumsum([0] + [len(q["tokens"]) for q in one["queries"]])
        ragged = Ragged(numpy.array(flat, dtype="int32"), starts, corpus.device)
        return table.query(ragged, torch.arange(len(one["queries"]), device=corpus.device))

    with torch.no_grad():
        measure(label, corpus, queries, lambda at: table.tool(corpus.fields, at.to(corpus.device)))


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
    before = teacher.tune(corpus.text, corpus.on_device(arguments.teacher_batch, 6, mix), arguments.teacher_steps)
    print(f"teacher tuned, {time.time() - clock:.0f} s", flush=True)
    teacher.average(before, arguments.average)
    if arguments.measure_teacher:
        measure_teacher(f"teacher averaged {arguments.average}", corpus, teacher)
    corpus.teach(teacher)
    start = initial_vectors(corpus, teacher)
    torch.manual_seed(6)
    print(f"embedded, {time.time() - clock:.0f} s", flush=True)
    table = Table(start).to(device)
    train(table, corpus, corpus.on_device(arguments.batch, 7, MIX), arguments.steps, arguments.rate, arguments.share)
    measure_table("table", corpus, table)
    print(f"fields {[round(weight, 2) for weight in table.fields.tolist()]}, {time.time() - clock:.0f} s", flush=True)
    numpy.savez(arguments.out / "table.npz", entries=numpy.array("\n".join(corpus.text["entries"])), **quantised(table))


if __name__ == "__main__":
    main()
