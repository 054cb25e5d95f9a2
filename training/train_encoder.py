"""Fine-tunes the encoder of the deep tier, all-MiniLM-L6-v2, on the bundle that `prepare.py` wrote, measures it, and writes its weights.

A query and a tool are embedded by the same transformer, and the vector of a text is the mean of the states of its tokens. The loss is InfoNCE
over the batch, in which each tool comes with two hard negatives: a sibling from the same server, and one of the tools that the encoder itself
considers most similar. Some queries are joined into a request with several needs. The mean over the tokens of one need must then find the tool
of that need, and the mean over the entire request must find all of them. So one pass over a request gives a vector for each of its needs.

A query may be surrounded by sentences that ask for nothing, and a tool may come without its description, so that wordy requests and terse
tools are learned as well. Requests for general tools, such as a web search, often name only their subject.

InfoNCE compares the tools of one query. So a second loss, the logistic loss of each pair of a query and a tool, makes similarities comparable
between queries, because confidences are computed from them. In this loss, requests that no tool serves belong to no tool.

At the end, the weights are interpolated with the original ones. Fine-tuning alone is better on catalogs like those in the training data and
worse on others.
"""

import argparse
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, normalize
from transformers import AutoModel, AutoTokenizer

from pairs import MIX, Pairs, measure

# Maximum number of tokens, including the two special ones. `toolcrib-core` uses the same limits for tools and requests.
QUERY_TOKENS, TOOL_TOKENS, REQUEST_TOKENS = 64, 112, 128
TEMPERATURE = 0.04
# Number of requests with several needs in a batch, as a share of the number of queries.
REQUESTS = 0.16
# Shares of the tools in a batch that are embedded without their server, without their parameters, and without most of their description.
DROPPED, TERSE = 0.1, 0.08
# Maximum number of tokens of the description of a terse tool.
TERSE_TOKENS = 8
# Share of the queries in a batch that are surrounded by filler, and of the requests that have one need and filler.
WORDY = 0.06
WORDY_REQUESTS = 0.25
# Number of unservable requests in a batch, as a share of the number of queries.
UNSERVABLE = 0.04
# The encoder is trained with a share of general requests, and without WordNet. A small dataset gets at least this weight.
ENCODER_MIX = {**{kind: share for kind, share in MIX.items() if kind != "wordnet"}, "general": 0.012}
LEAST_OF_A_SET = 250
# Bits of `Batch.hidden`.
NAME, DESCRIPTION = 1, 2
# The ids of `.`, `?` and `!`.
ENDS = (1012, 1029, 999)
# Number of texts that are padded to the same length.
CHUNK = 512
# Number of processes that prepare batches.
PRODUCERS = 4


@dataclass
class Padded:
    """Texts in chunks of similar length, each padded to its longest text, and the place of each text in them."""

    chunks: list
    places: numpy.ndarray


@dataclass
class Step:
    queries: Padded
    tools: Padded
    also: numpy.ndarray
    requests: numpy.ndarray
    """For each need: its request, the range of its tokens, and the position of its query in the batch."""
    needs: numpy.ndarray
    unservable: Padded


def block(texts):
    ids = numpy.zeros((len(texts), max(len(one) for one in texts)), dtype="int32")
    for row, one in zip(ids, texts):
        row[: len(one)] = one
    return ids


def padded(texts, chunk=CHUNK):
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    places = numpy.empty(len(texts), dtype="int64")
    places[order] = numpy.arange(len(texts))
    return Padded([block([texts[at] for at in order[start : start + chunk]]) for start in range(0, len(texts), chunk)], places)


class Tokens:
    """The tokens of all texts."""

    def __init__(self, folder, pairs):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.first, self.last = [self.tokenizer.cls_token_id], [self.tokenizer.sep_token_id]
        one = lambda text: self.read([text])[0]
        self.colon, self.open, self.close = one(":"), one("("), one(")")
        self.joints = [one(text) for text in (".", ".", ".", ",", "and", ", then", "; also")]
        self.queries = self.read(pairs.text["queries"])
        self.filler = self.read(pairs.text["filler"])
        self.unservable = self.read(pairs.text["unservable"])
        self.fields = [self.read([parts[field] for parts in pairs.text["parts"]]) for field in range(4)]

    def read(self, texts):
        return [numpy.array(tokens, dtype="int32") for tokens in self.tokenizer(texts, add_special_tokens=False)["input_ids"]]

    def whole(self, tokens, most):
        return numpy.concatenate([self.first, tokens[: most - 2], self.last]).astype("int32")

    def query(self, at):
        return self.whole(self.queries[at], QUERY_TOKENS)

    def wordy(self, at, rng):
        """The tokens of a query between one to four sentences of filler, and the range of the query in them."""
        room = REQUEST_TOKENS - 2 - len(self.queries[at])
        parts = []
        for chosen in rng.integers(len(self.filler), size=rng.integers(1, 5)).tolist():
            if len(self.filler[chosen]) < room:
                parts.append(self.filler[chosen])
                room -= len(self.filler[chosen])
        place = int(rng.integers(len(parts) + 1))
        start = 1 + sum(len(part) for part in parts[:place])
        tokens = numpy.concatenate([*parts[:place], self.queries[at], *parts[place:]])
        return self.whole(tokens, REQUEST_TOKENS), (start, start + len(self.queries[at]))

    def tool(self, at, hidden=0, server=True, parameters=True, description_tokens=TOOL_TOKENS):
        """The tokens of `prose`, without the hidden parts."""
        parts = [self.fields[0][at]] if server else []
        parts += [] if hidden & NAME else [self.fields[1][at]]
        parts += [self.colon]
        parts += [] if hidden & DESCRIPTION else [self.fields[2][at][:description_tokens]]
        if parameters and len(self.fields[3][at]):
            parts += [self.open, self.fields[3][at], self.close]
        return self.whole(numpy.concatenate(parts), TOOL_TOKENS)

    def request(self, queries, rng):
        """Joins queries into a request. Returns its tokens and the range of each query that is not cut off."""
        tokens, ranges = list(self.first), []
        joint = self.joints[rng.integers(len(self.joints))]
        for number, at in enumerate(queries):
            one = self.queries[at]
            if len(one) == 0 or len(tokens) + len(one) + len(joint) + 1 > REQUEST_TOKENS:
                break
            start = len(tokens)
            tokens.extend(one)
            if number + 1 < len(queries) and int(one[-1]) not in ENDS:
                tokens.extend(joint)
            ranges.append((start, len(tokens)))
        return numpy.array(tokens + self.last), ranges


def produce(tokens, pairs, size, seed, queue):
    """Puts the steps of one stream of batches into the queue."""
    rng = numpy.random.default_rng(seed)
    for batch in pairs.batches(size, seed, ENCODER_MIX, LEAST_OF_A_SET):
        kept = rng.random((len(batch.tools), 2)) >= DROPPED
        # The length of a terse description is chosen evenly, so some have none.
        lengths = numpy.where(rng.random(len(batch.tools)) < TERSE, rng.integers(0, TERSE_TOKENS + 1, len(batch.tools)), TOOL_TOKENS)
        options = zip(batch.tools.tolist(), batch.hidden.tolist(), kept.tolist(), lengths.tolist())
        tools = [tokens.tool(at, hidden, *keep, length) for at, hidden, keep, length in options]
        # Only queries of people are surrounded by filler, not parts of tools.
        can_be_wordy = [not pairs.text["kinds"][at].startswith("itself") and 0 < len(tokens.queries[at]) <= QUERY_TOKENS for at in batch.queries.tolist()]
        requests, needs = [], []
        for _ in range(int(REQUESTS * size)):
            members = rng.choice(size, rng.integers(2, 5), replace=False).tolist()
            if rng.random() < WORDY_REQUESTS and can_be_wordy[members[0]]:
                request, part = tokens.wordy(int(batch.queries[members[0]]), rng)
                ranges = [part]
            else:
                request, ranges = tokens.request(batch.queries[members].tolist(), rng)
                ranges = ranges if len(ranges) > 1 else []
            if ranges:
                needs.extend((len(requests), *part, member) for part, member in zip(ranges, members))
                requests.append(request)
        is_wordy = rng.random(size) < WORDY
        queries = [tokens.wordy(at, rng)[0] if wordy and can else tokens.query(at) for at, wordy, can in zip(batch.queries.tolist(), is_wordy, can_be_wordy)]
        unservable = rng.choice(len(tokens.unservable), int(UNSERVABLE * size), replace=False).tolist()
        unservable = padded([tokens.whole(tokens.unservable[at], QUERY_TOKENS) for at in unservable])
        queue.put(Step(padded(queries), padded(tools), batch.also, block(requests), numpy.array(needs), unservable))


class Encoder:
    def __init__(self, folder, device):
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).to(device)
        self.device = device
        # Scale and bias of the logistic loss.
        self.line = torch.nn.Parameter(torch.tensor([12.0, -10.0], device=device))

    def states(self, ids):
        """The states of all tokens, and which of them are not padding, whose id is 0."""
        ids = torch.from_numpy(ids.astype("int64")).to(self.device, non_blocking=True)
        mask = ids != 0
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state.float()
        return states, mask.unsqueeze(-1)

    def mean(self, ids):
        states, mask = self.states(ids)
        return normalize((states * mask).sum(1), dim=-1)

    def vectors(self, texts):
        return torch.cat([self.mean(ids) for ids in texts.chunks])[torch.from_numpy(texts.places).to(self.device)]

    @torch.no_grad()
    def embed(self, texts):
        self.model.eval()
        return self.vectors(padded(texts, 2048))

    @torch.no_grad()
    def embed_parts(self, texts, parts):
        """The vectors of parts of texts: for each text, ranges of positions in its tokens."""
        self.model.eval()
        found = []
        for start in range(0, len(texts), 512):
            states, _ = self.states(block(texts[start : start + 512]))
            for row, ranges in enumerate(parts[start : start + 512]):
                found.extend(normalize(states[row, first:last].sum(0), dim=-1) for first, last in ranges)
        return torch.stack(found) if found else torch.zeros(0, self.model.config.hidden_size, device=self.device)

    def loss(self, step, weight, logistic):
        queries, tools = self.vectors(step.queries), self.vectors(step.tools)
        size = len(queries)
        labels = torch.arange(size, device=self.device)
        also = torch.from_numpy(step.also).to(self.device)
        scores = (queries @ tools.T / TEMPERATURE).masked_fill(also, -1e4)
        back = scores[:, :size].T
        loss = cross_entropy(scores, labels) + 0.5 * cross_entropy(back, labels) + weight * self.loss_of_needs(step, tools, also)
        return loss + logistic * self.logistic_loss(queries, self.vectors(step.unservable), tools, also)

    def logistic_loss(self, queries, unservable, tools, also):
        """The sum over all tools of a query, as a mean over the queries. Another correct answer is neither required nor excluded."""
        size = len(queries)
        scores = self.line[0] * (torch.cat([queries, unservable]) @ tools.T) + self.line[1]
        correct = torch.zeros_like(scores)
        correct[:size, :size].fill_diagonal_(1)
        losses = binary_cross_entropy_with_logits(scores, correct, reduction="none")
        losses = torch.cat([losses[:size].masked_fill(also, 0), losses[size:]])
        return losses.sum() / len(scores)

    def loss_of_needs(self, step, tools, also):
        """The loss of the requests and of their needs."""
        states, mask = self.states(step.requests)
        requests = normalize((states * mask).sum(1), dim=-1)
        owner, first, last, gold = torch.from_numpy(step.needs.T.copy()).to(self.device)
        places = torch.arange(states.shape[1], device=self.device)
        inside = (places >= first.unsqueeze(1)) & (places < last.unsqueeze(1))
        needs = normalize(torch.einsum("nt,nth->nh", inside.float(), states[owner]), dim=-1)
        loss = cross_entropy((needs @ tools.T / TEMPERATURE).masked_fill(also[gold], -1e4), gold)
        # For the entire request, each of its tools is a correct answer, so the others are left out of its sum.
        correct = torch.zeros(len(requests), len(tools), device=self.device)
        correct.index_add_(0, owner, also[gold].float())
        correct[owner, gold] = 1
        others = correct[owner] > 0
        others[torch.arange(len(gold), device=self.device), gold] = False
        scores = (requests @ tools.T / TEMPERATURE)[owner].masked_fill(others, -1e4)
        return loss + 0.5 * cross_entropy(scores, gold)

    def interpolate(self, before, after, share):
        """Loads weights between `before` (share 0) and `after` (share 1)."""
        self.model.load_state_dict({key: before[key] + share * (value - before[key]) if value.is_floating_point() else value for key, value in after.items()})


def tune(encoder, pairs, tokens, arguments):
    optimizer = torch.optim.AdamW(
        [{"params": encoder.model.parameters()}, {"params": [encoder.line], "lr": 0.02, "weight_decay": 0}], lr=arguments.rate, weight_decay=0.01, fused=encoder.device.type == "cuda"
    )
    steps, warm = arguments.steps, max(1, arguments.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm) * max(0.02, 1 - step / steps))
    clock = time.time()
    context = multiprocessing.get_context("fork")
    for half in range(2):
        # The nearest tools are found with the original encoder, and again with the encoder at half time.
        pairs.find_nearest(encoder.embed([tokens.tool(at) for at in range(len(pairs.text["parts"]))]))
        print(f"nearest found, {time.time() - clock:.0f} s", flush=True)
        queues = [context.Queue(3) for _ in range(PRODUCERS)]
        producers = [context.Process(target=produce, args=(tokens, pairs, arguments.batch, 6 + 100 * half + at, queue), daemon=True) for at, queue in enumerate(queues)]
        for producer in producers:
            producer.start()
        encoder.model.train()
        for step in range(half * steps // 2, (half + 1) * steps // 2):
            loss = encoder.loss(queues[step % PRODUCERS].get(), arguments.needs, arguments.logistic)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(encoder.model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.3f}, scale and bias {encoder.line.tolist()}, {time.time() - clock:.0f} s", flush=True)
        for producer in producers:
            producer.kill()


def measure_encoder(label, pairs, encoder, tokens):
    tools = lambda at: encoder.embed([tokens.tool(i) for i in at.tolist()])
    queries = lambda one: encoder.embed([tokens.whole(query, REQUEST_TOKENS) for query in tokens.read([q["text"] for q in one["queries"]])])
    measure(label, pairs, queries, tools)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=3e-5)
    parser.add_argument("--needs", type=float, default=0.5, help="weight of the loss of requests with several needs")
    parser.add_argument("--logistic", type=float, default=0.05, help="weight of the logistic loss")
    parser.add_argument("--share", type=float, default=0.8, help="share of the fine-tuned weights")
    arguments = parser.parse_args()
    torch.manual_seed(6)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arguments.out.mkdir(parents=True, exist_ok=True)
    pairs = Pairs(arguments.bundle)
    if len(pairs.text["unservable"]) < UNSERVABLE * arguments.batch or not pairs.text["filler"]:
        raise SystemExit("the bundle has too few unservable requests or no filler: run prepare.py with --general")
    tokens = Tokens(arguments.teacher, pairs)
    encoder = Encoder(arguments.teacher, device)
    before = {key: value.clone() for key, value in encoder.model.state_dict().items()}
    tune(encoder, pairs, tokens, arguments)
    after = {key: value.clone() for key, value in encoder.model.state_dict().items()}
    for share in (0.6, 1.0):
        encoder.interpolate(before, after, share)
        measure_encoder(f"share {share}", pairs, encoder, tokens)
    encoder.interpolate(before, after, arguments.share)
    save_file({key: value.half().contiguous() for key, value in encoder.model.state_dict().items()}, arguments.out / "encoder.safetensors")
    measure_encoder(f"share {arguments.share}", pairs, encoder, tokens)


if __name__ == "__main__":
    main()
