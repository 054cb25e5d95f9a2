"""Fits the probes for general tools, and adds them to an encoder file.

A general tool serves requests about any subject, which often name only their subject, so they are not similar to the tool. The folder
`general/` has tools and requests of nine types, such as `info` (web search) and `shell`. For each type, two linear classifiers ("probes") are
fitted to the vectors of the encoder: one says whether a tool is of the type, the other whether a request needs a tool of the type. Requests
of the type `private` need one specific system, and requests of the type `none` need no tool at all.

The vectors come from the example `embed` of `toolcrib-embed`, so they are those that Toolcrib computes, before they are
quantised.
"""

import argparse
import json
import random
import subprocess
from pathlib import Path

import numpy

from data import WEB_SEARCH, lines, prose, spaced
from write_encoder import add_general_types

# Maximum numbers of tokens, as in `toolcrib-core`.
QUERY_TOKENS, TOOL_TOKENS = 128, 112
# Numbers of queries and of tools from other sources, which count as not general.
OTHER_QUERIES, OTHER_TOOLS = 12_000, 20_000
# Shares of the weight of the positive examples among requests and among tools: general tools are rare. The examples of other types and those
# of other sources have one half each of the rest.
POSITIVE = {"request": 0.3, "tool": 0.05}
# Strength of the regularisation. It was chosen by cross-validation.
PENALTY = 0.04
FOLDS = 5


def embed(program, encoder, texts, most):
    """The vectors of texts."""
    text = "\n".join(" ".join(one.split()) for one in texts) + "\n"
    done = subprocess.run([program, encoder, str(most)], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return numpy.frombuffer(done.stdout, "<f4").reshape(len(texts), -1).astype("f8")


def fit(vectors, positive, weights):
    """A logistic regression by Newton's method. Returns the weights, with the bias last."""
    inputs = numpy.hstack([vectors, numpy.ones((len(vectors), 1))])
    ridge = numpy.full(inputs.shape[1], PENALTY / len(vectors[0]))
    ridge[-1] = 0
    line = numpy.zeros(inputs.shape[1])
    for _ in range(25):
        p = 1 / (1 + numpy.exp(-inputs @ line))
        gradient = inputs.T @ (weights * (p - positive)) + ridge * line
        hessian = (inputs * (weights * p * (1 - p))[:, None]).T @ inputs + numpy.diag(ridge + 1e-9)
        step = numpy.linalg.solve(hessian, gradient)
        line -= step
        if numpy.abs(step).max() < 1e-4:
            break
    return line


def weights(types, wanted, positive):
    """The weight of each example for the probe of a type. `types` has `None` for examples of other sources."""
    group = numpy.array([0 if one == wanted else 1 if one else 2 for one in types])
    shares = (positive, (1 - positive) / 2, (1 - positive) / 2)
    return group == 0, sum((group == at) * (share / max(1, (group == at).sum())) for at, share in enumerate(shares))


def auc(scores, positive):
    order = scores.argsort()
    ranks = numpy.empty(len(scores))
    ranks[order] = numpy.arange(1, len(scores) + 1)
    count = positive.sum()
    return (ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count))


def fit_all(what, vectors, types, names):
    """Fits the probes of all types, and prints how well each one separates examples that it was not fitted to."""
    folds = numpy.random.default_rng(6).integers(FOLDS, size=len(vectors))
    found = []
    for name in names:
        positive, weight = weights(types, name, POSITIVE[what])
        scores = numpy.empty(len(vectors))
        for fold in range(FOLDS):
            rest = folds != fold
            line = fit(vectors[rest], positive[rest], weight[rest])
            scores[~rest] = vectors[~rest] @ line[:-1] + line[-1]
        threshold = numpy.quantile(scores[~positive], 0.99)
        print(f"{what} {name}: {positive.sum()} examples, AUC {auc(scores, positive):.3f}, {(scores[positive] > threshold).mean():.0%} of them above 99 % of the others", flush=True)
        found.append(fit(vectors, positive, weight))
    return numpy.array(found, "<f4")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path, help="an encoder.bin, to which the probes are added")
    parser.add_argument("--bundle", type=Path, required=True, help="the bundle that the encoder was trained with")
    parser.add_argument("--general", type=Path, default=Path(__file__).parent / "general")
    parser.add_argument("--embed", type=Path, default=Path(__file__).parent.parent / "target/release/examples/embed")
    arguments = parser.parse_args()
    rng = random.Random(6)
    text = json.loads((arguments.bundle / "text.json").read_text(encoding="utf-8"))
    trained = set(numpy.nonzero(numpy.load(arguments.bundle / "tokens.npz")["trained"])[0].tolist())

    # The encoder was trained with the first file only.
    requests = [line for file in ("requests", "probe-requests") for line in lines(arguments.general / f"{file}.jsonl") if line["type"] != "filler"]
    written = [query for query, kind in zip(text["queries"], text["kinds"]) if kind.startswith("written")]
    written = rng.sample(written, min(OTHER_QUERIES, len(written)))
    tools = lines(arguments.general / "tools.jsonl")
    names = sorted({tool["type"] for tool in tools})
    own = [prose(tool["server"], spaced(tool["name"]), tool["description"], " ".join(tool["parameters"])[:120]) for tool in tools]
    others = [at for at, server in enumerate(text["servers"]) if at in trained and not server.startswith(("general/", "wordnet/"))]
    others = rng.sample(others, min(OTHER_TOOLS, len(others)))
    is_search = [text["servers"][at].startswith("mcp/") and bool(WEB_SEARCH.search(text["parts"][at][1])) for at in others]
    # Servers are left out of half of the tools, because many catalogs have none.
    parts = [text["parts"][at] if rng.random() < 0.5 else ["", *text["parts"][at][1:]] for at in others]

    requests_vectors = embed(arguments.embed, arguments.encoder, [line["text"] for line in requests] + written, QUERY_TOKENS)
    tools_vectors = embed(arguments.embed, arguments.encoder, own + [prose(*part) for part in parts], TOOL_TOKENS)
    request_probes = fit_all("request", requests_vectors, [line["type"] for line in requests] + [None] * len(written), names)
    tool_probes = fit_all("tool", tools_vectors, [tool["type"] for tool in tools] + ["info" if search else None for search in is_search], names)
    add_general_types(arguments.encoder, names, request_probes, tool_probes)


if __name__ == "__main__":
    main()
