"""Fits the probes for general tools, and adds them to an encoder file.

A general tool serves requests about any subject, which often name only their subject, so they are not similar to the tool. The folder
`general/` has tools and requests of nine types, such as `info` (web search) and `shell`. For each type, two classifiers ("probes") are fitted
to the vectors of the encoder: one says whether a tool is of the type, the other whether a request needs a tool of the type. Requests of the
type `private` need one specific system, and requests of the type `none` need no tool at all.

The probes of tools are linear. The requests for a web search are about anything, so the probes of requests also have a weight for each
prototype: the centre of a group of similar requests. Its influence is that of `general_type.rs`.

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
# Shares of the weight of the positive examples, of the queries for operations of AWS, Google and GitHub, and of other queries and tools
# that are not in `general/`. The examples of other types have the rest. Many of the other queries ask for public information, so they
# count little for the type `info`.
SHARES = {"request": (0.2, 0.25, 0.15), "tool": (0.05, 0, 0.475)}
INFO_SHARES = {"request": (0.55, 0.12, 0.02), "tool": (0.15, 0, 0.425)}
VENDORS = ("botocore/", "google/", "octokit/")
# Number of prototypes that are centres of requests for web searches, of other requests in `general/`, and of queries from other sources.
PROTOTYPES = (460, 460, 104)
# The influence of a prototype on a request, as in `general_type.rs`.
SHARPNESS, UNIT_COSINE = 6.0, 0.65
# Strength of the regularisation of each weight of a probe of tools and of requests. They were chosen by cross-validation.
TOOL_PENALTY, REQUEST_PENALTY = 3e-5, 7e-6
# The share of the examples with which the probes are checked, which are fitted to the others for this.
CHECKED = 0.2


def embed(program, encoder, texts, most):
    """The vectors of texts."""
    text = "\n".join(" ".join(one.split()) for one in texts) + "\n"
    done = subprocess.run([program, encoder, str(most)], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return numpy.frombuffer(done.stdout, "<f4").reshape(len(texts), -1).astype("f8")


def centres(vectors, count, rng):
    """Returns vectors of length 1, the centres of groups of vectors (k-means by cosine)."""
    found = vectors[rng.choice(len(vectors), count, replace=False)]
    for _ in range(20):
        sums = numpy.zeros_like(found)
        numpy.add.at(sums, (vectors @ found.T).argmax(1), vectors)
        lengths = numpy.linalg.norm(sums, axis=1, keepdims=True)
        # A centre without vectors stays where it is.
        found = numpy.where(lengths > 0, sums / numpy.maximum(lengths, 1e-9), found)
    return found


def influences(vectors, prototypes):
    return numpy.exp(SHARPNESS * (vectors @ prototypes.T - UNIT_COSINE))


def fit(inputs, positive, weights, penalty, line):
    """A logistic regression by Newton's method, which begins with `line`. Returns the weights, with the bias last."""
    inputs = numpy.hstack([inputs, numpy.ones((len(inputs), 1))])
    ridge = numpy.full(inputs.shape[1], penalty)
    ridge[-1] = 0
    for _ in range(25):
        p = 1 / (1 + numpy.exp(-inputs @ line))
        gradient = inputs.T @ (weights * (p - positive)) + ridge * line
        hessian = (inputs * (weights * p * (1 - p))[:, None]).T @ inputs + numpy.diag(ridge + 1e-9)
        step = numpy.linalg.solve(hessian, gradient)
        line = line - step
        if numpy.abs(step).max() < 1e-3:
            break
    return line


def weights(types, wanted, shares):
    """The weight of each example for the probe of a type. `types` has `vendor` or `None` for examples that are not in `general/`."""
    positive, vendor, other = shares
    group = numpy.array([0 if one == wanted else 2 if one == "vendor" else 1 if one else 3 for one in types])
    shares = (positive, 1 - positive - vendor - other, vendor, other)
    return group == 0, sum((group == at) * (share / max(1, (group == at).sum())) for at, share in enumerate(shares))


def auc(scores, positive):
    order = scores.argsort()
    ranks = numpy.empty(len(scores))
    ranks[order] = numpy.arange(1, len(scores) + 1)
    count = positive.sum()
    return (ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count))


def fit_all(what, inputs, types, names, penalty):
    """Fits the probes of all types, and prints how well each one separates examples that it was not fitted to."""
    checked = numpy.random.default_rng(6).random(len(inputs)) < CHECKED
    found = []
    for name in names:
        positive, weight = weights(types, name, (INFO_SHARES if name == "info" else SHARES)[what])
        line = fit(inputs, positive, weight, penalty, numpy.zeros(inputs.shape[1] + 1))
        others = fit(inputs[~checked], positive[~checked], weight[~checked], penalty, line)
        scores, wanted = inputs[checked] @ others[:-1] + others[-1], positive[checked]
        threshold = numpy.quantile(scores[~wanted], 0.99)
        print(f"{what} {name}: {positive.sum()} examples, AUC {auc(scores, wanted):.3f}, {(scores[wanted] > threshold).mean():.0%} of them above 99 % of the others", flush=True)
        found.append(line)
    return numpy.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("encoder", type=Path, help="an encoder.bin, to which the probes are added")
    parser.add_argument("--bundle", type=Path, required=True, help="the bundle that the encoder was trained with")
    parser.add_argument("--general", type=Path, default=Path(__file__).parent / "general")
    parser.add_argument("--embed", type=Path, default=Path(__file__).parent.parent / "target/release/examples/embed")
    arguments = parser.parse_args()
    rng = random.Random(6)
    text = json.loads((arguments.bundle / "text.json").read_text(encoding="utf-8"))
    arrays = numpy.load(arguments.bundle / "tokens.npz")
    trained = set(numpy.nonzero(arrays["trained"])[0].tolist())
    gold, starts = arrays["gold"], arrays["gold_starts"]

    # The encoder was trained with the first file only.
    requests = [line for file in ("requests", "probe-requests") for line in lines(arguments.general / f"{file}.jsonl") if line["type"] != "filler"]
    written = [at for at, kind in enumerate(text["kinds"]) if kind.startswith("written")]
    written = rng.sample(written, min(OTHER_QUERIES, len(written)))
    servers = [text["servers"][gold[starts[at]]] for at in written]
    written = [text["queries"][at] for at in written]
    # Tools of the type `other` are similar to general tools.
    tools = [line for file in ("tools", "probe-tools") for line in lines(arguments.general / f"{file}.jsonl")]
    names = sorted({tool["type"] for tool in tools} - {"other"})
    own = [prose(tool["server"], spaced(tool["name"]), tool["description"], " ".join(tool["parameters"])[:120]) for tool in tools]
    others = [at for at, server in enumerate(text["servers"]) if at in trained and not server.startswith(("general/", "wordnet/"))]
    others = rng.sample(others, min(OTHER_TOOLS, len(others)))
    is_search = [text["servers"][at].startswith("mcp/") and bool(WEB_SEARCH.search(text["parts"][at][1])) for at in others]
    # Servers are left out of half of the tools, because many catalogs have none.
    parts = [text["parts"][at] if rng.random() < 0.5 else ["", *text["parts"][at][1:]] for at in others]

    requests_vectors = embed(arguments.embed, arguments.encoder, [line["text"] for line in requests] + written, QUERY_TOKENS)
    tools_vectors = embed(arguments.embed, arguments.encoder, own + [prose(*part) for part in parts], TOOL_TOKENS)
    types = [line["type"] for line in requests] + ["vendor" if server.startswith(VENDORS) else None for server in servers]
    groups = numpy.array([0 if one == "info" else 2 if one in ("vendor", None) else 1 for one in types])
    generator = numpy.random.default_rng(6)
    prototypes = numpy.vstack([centres(requests_vectors[groups == at], count, generator) for at, count in enumerate(PROTOTYPES)])
    inputs = numpy.hstack([requests_vectors, influences(requests_vectors, prototypes)])
    request_probes = fit_all("request", inputs, types, names, REQUEST_PENALTY)
    is_general = [tool["type"] for tool in tools] + ["info" if search else None for search in is_search]
    tool_probes = fit_all("tool", tools_vectors, is_general, names, TOOL_PENALTY)
    hidden = requests_vectors.shape[1]
    linear = request_probes[:, [*range(hidden), -1]]
    add_general_types(arguments.encoder, names, linear, tool_probes, prototypes, request_probes[:, hidden:-1])


if __name__ == "__main__":
    main()
