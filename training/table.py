"""The table: a vector for each entry of the vocabulary, trained so that their sums approximate the teacher.

The vector of a query is the weighted sum of its tokens' vectors, and the vector of a tool is the weighted sum of its fields. A token has one
weight in queries and another in tools, because some words say little only in a query ("please", "need") and others only in a tool
("returns", "specified"). The table is trained with InfoNCE on the pairs, and with the teacher's similarities over the batch as soft targets.
"""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, normalize, softmax

FIELDS = 5


class Ragged:
    """Lists of tokens, concatenated on the device."""

    def __init__(self, flat, starts, device):
        self.flat = torch.from_numpy(flat.astype("int32")).to(device)
        self.starts = torch.from_numpy(starts.astype("int64")).to(device)

    def take(self, at):
        first, last = self.starts[at], self.starts[at + 1]
        lengths = last - first
        offsets = torch.cumsum(lengths, 0) - lengths
        inside = torch.arange(int(lengths.sum()), device=at.device) - torch.repeat_interleave(offsets, lengths)
        return self.flat[torch.repeat_interleave(first, lengths) + inside].long(), offsets, lengths


class Table(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.rows = nn.Parameter(start.clone())
        self.asked = nn.Parameter(torch.zeros(len(start)))
        self.told = nn.Parameter(torch.zeros(len(start)))
        # Initial weights of name, description, parameter names, parameter descriptions and server.
        self.fields = nn.Parameter(torch.tensor([1.0, 1.0, 0.3, 0.3, 0.4]))
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

    def bag(self, tokens, offsets, weights, dropout):
        if dropout and self.training:
            weights = weights * (torch.rand_like(weights) >= dropout)
        return nn.functional.embedding_bag(tokens, self.rows, offsets, mode="sum", per_sample_weights=weights)

    def query(self, ragged, at, dropout=0.0):
        tokens, offsets, _ = ragged.take(at)
        return normalize(self.bag(tokens, offsets, self.asked.exp()[tokens], dropout), dim=-1)

    def tool(self, fields, at, hidden=None, dropout=0.0):
        total = 0
        for number, ragged in enumerate(fields):
            tokens, offsets, lengths = ragged.take(at)
            vectors = self.bag(tokens, offsets, self.told.exp()[tokens], dropout) / lengths.clamp(min=1).sqrt().unsqueeze(1)
            if hidden is not None:
                vectors = vectors * (hidden >> number & 1 == 0).unsqueeze(1)
            total = total + self.fields[number] * vectors
        return normalize(total, dim=-1)


# Share of the tokens of each text that are dropped at random during training.
DROPOUT = 0.1
# Temperature of the teacher's similarities.
TEMPERATURE = 0.05


def train(table, corpus, batches, steps, rate, share):
    """Trains the table. `share` is the weight of the distillation loss, and the rest is the weight of the contrastive loss of the pairs."""
    table.train()
    optimizer = torch.optim.Adam([{"params": [table.rows], "lr": rate}, {"params": [p for n, p in table.named_parameters() if n != "rows"], "lr": 2 * rate}], betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 100) * max(0.01, 0.5 * (1 + math.cos(math.pi * step / steps))))
    for step in range(steps):
        batch = next(batches)
        queries = table.query(corpus.queries, batch.queries, DROPOUT)
        tools = table.tool(corpus.fields, batch.tools, batch.hidden, DROPOUT)
        scores = queries @ tools.T * table.scale.exp().clamp(max=60)
        masked = scores.masked_fill(batch.also, -1e4)
        labels = torch.arange(len(queries), device=queries.device)
        pairs = cross_entropy(masked, labels)
        back = masked[:, : len(queries)].T
        pairs = (pairs + 0.5 * cross_entropy(back, labels)) / 1.5
        with torch.no_grad():
            taught = corpus.taught_queries[batch.queries].float() @ corpus.taught_tools[batch.tools].float().T / TEMPERATURE
        soft = kl_div(log_softmax(scores, -1), softmax(taught, -1), reduction="batchmean")
        n = len(queries)
        soft = soft + 0.5 * kl_div(log_softmax(scores[:, :n].T, -1), softmax(taught[:, :n].T, -1), reduction="batchmean")
        loss = (1 - share) * pairs + share * soft
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 500 == 0:
            print(f"table {step} pairs {pairs.item():.3f} soft {soft.item():.3f} scale {table.scale.exp().item():.1f}", flush=True)
    table.eval()
