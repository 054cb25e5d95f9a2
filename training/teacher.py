"""Fine-tunes the teacher, all-MiniLM-L6-v2, on queries and the tools they need.

The loss is InfoNCE over the batch. Each tool comes with a sibling from the same server, so that the teacher learns to distinguish `create`
from `delete`, and not only mail from maps. The fine-tuned weights are then averaged with the original ones. Fine-tuning alone is better on
catalogs like those in the training data and worse on others. An average with somewhat more than half of the fine-tuned weights is good on both.
"""

import numpy
import torch
from torch.nn.functional import cross_entropy, normalize

QUERY_TOKENS, TOOL_TOKENS = 48, 112


class Teacher:
    def __init__(self, folder, device):
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).float().to(device)
        self.device = device

    def read(self, texts, most):
        """Tokenizes every text once, because tokenizing in every step took longer than the step itself."""
        return [numpy.array(tokens, dtype="int32") for tokens in self.tokenizer(texts, truncation=True, max_length=most)["input_ids"]]

    def encode(self, tokens):
        longest = max(len(one) for one in tokens)
        ids = numpy.zeros((len(tokens), longest), dtype="int64")
        for row, one in zip(ids, tokens):
            row[: len(one)] = one
        ids = torch.from_numpy(ids).to(self.device, non_blocking=True)
        # The teacher's padding is token 0, which no text contains.
        batch = {"input_ids": ids, "attention_mask": (ids != 0).long()}
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            hidden = self.model(**batch).last_hidden_state.float()
        mask = batch["attention_mask"].unsqueeze(-1)
        return normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1), dim=-1)

    @torch.no_grad()
    def embed(self, texts, most, batch=2048):
        tokens = self.read(texts, most)
        self.model.eval()
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        out = torch.empty(len(tokens), self.model.config.hidden_size, dtype=torch.float16, device=self.device)
        for start in range(0, len(tokens), batch):
            at = order[start : start + batch]
            out[torch.tensor(at, device=self.device)] = self.encode([tokens[i] for i in at]).half()
        return out

    def tune(self, text, batches, steps, rate=2e-5, temperature=0.04):
        """Fine-tunes the model and returns the original weights. `batches` yields the queries, tools and sibling tools of each step."""
        asked, told = self.read(text["queries"], QUERY_TOKENS), self.read(text["prose"], TOOL_TOKENS)
        before = {key: value.clone() for key, value in self.model.state_dict().items()}
        self.model.train()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=0.01)
        warm = max(1, steps // 10)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm) * max(0.02, 1 - step / steps))
        for step in range(steps):
            batch = next(batches)
            queries = self.encode([asked[at] for at in batch.queries.tolist()])
            tools = self.encode([told[at] for at in batch.tools.tolist()])
            scores = queries @ tools.T / temperature
            scores = scores.masked_fill(batch.also, -1e4)
            labels = torch.arange(len(queries), device=self.device)
            loss = cross_entropy(scores, labels)
            back = (queries @ tools[: len(queries)].T / temperature).T.masked_fill(batch.also[:, : len(queries)].T, -1e4)
            loss = loss + 0.5 * cross_entropy(back, labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 100 == 0:
                print(f"teacher {step} loss {loss.item():.3f}", flush=True)
        return before

    def average(self, before, share):
        """Interpolates between the original weights `before` (share 0) and the fine-tuned ones (share 1)."""
        now = self.model.state_dict()
        self.model.load_state_dict({key: before[key] + share * (value - before[key]) if value.is_floating_point() else value for key, value in now.items()})
