"""How sure a hit is, held against what served: queries put to their own catalog, and to one that cannot serve them.

Runs `toolcrib eval` on the sets and on pairs of a catalog and the queries of another subject, and reads the confidences out of its run
files. Says where the place lies that answers 95 % of what can be served, how much of the rest gets over it, and what the curve of
`crates/toolcrib-core/src/rank/confidence.rs` would have to be: a line over the logits of the confidences there are, as if all of
them came from that curve, which nearly all do. Slope 1 and bias 0 say that a confidence is the share of hits that serve.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy

from data import lines

# A catalog, and queries that none of its tools serves. Reference servers of MCP (files, Git, time), maps and browsers are no plugins for
# shopping and no weather APIs; what AWS and GitHub do, a plugin does not.
PAIRS = [(catalog, queries) for catalog in ("mcpproxy_golden", "mcptoolbench") for queries in ("toollens", "ultratool", "seal_tools", "metatool", "stabletoolbench", "bfcl")]
PAIRS += [(catalog, "mcpproxy_golden") for catalog in ("metatool", "toollens", "ultratool")]
PAIRS += [("left-octokit", queries) for queries in ("metatool", "toollens", "bfcl", "ultratool", "seal_tools")]
PAIRS += [(catalog, queries) for catalog in ("metatool", "toollens", "ultratool", "mcptoolbench", "mcpproxy_golden") for queries in ("left-botocore", "left-octokit")]
PAIRS += [("left-botocore", queries) for queries in ("metatool", "toollens", "bfcl")]
CONFIDENCE = Path(__file__).parent.parent / "crates/toolcrib-core/src/rank/confidence.rs"
# The curve that the first hits of a preset mostly have theirs from.
CURVES = {"default": "NEAR", "words": "WORDS"}
KEPT = 0.95


def constant(name):
    """A number of `confidence.rs`, or the bias and the slope of a curve."""
    value = re.search(rf"^const {name}: \w+ = (.+);$", CONFIDENCE.read_text(encoding="utf-8"), re.M)[1]
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", value)]
    return numbers if len(numbers) > 1 else numbers[0]


def find(folders, name):
    return next((folder / name for folder in folders if (folder / name).is_dir()), None)


def file(folder, name):
    return next((path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()), None)


def read(folder, name):
    return lines(file(folder, name))


def paired(folders, catalog, queries, out):
    """A set of one's tools and the other's queries, without gold."""
    into = out / f"{catalog}+{queries}"
    into.mkdir()
    for name, written in (("catalog", read(find(folders, catalog), "catalog")), ("queries", [{**q, "gold": []} for q in read(find(folders, queries), "queries")])):
        (into / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in written), encoding="utf-8")
    return into


def asked(arguments, sets, out):
    """The run of every set, by its name."""
    command = [arguments.toolcrib, "eval", "--json", "--run-file", out / "run.jsonl", *sets]
    command += ["--preset", arguments.preset]
    command += ["--embedding-model", arguments.embedding_model] if arguments.embedding_model else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    runs = {}
    for line in lines(out / "run.jsonl"):
        # A query without a hit has none.
        runs.setdefault(line["dataset"], []).append({"confidence": [], **line})
    return runs


def answered(run, threshold):
    return sum(bool(line["confidence"]) and line["confidence"][0] >= threshold for line in run) / len(run)


def share(runs, place):
    return sum(answered(run, place) for run in runs.values()) / len(runs)


def threshold(runs):
    """What 95 % of the queries reach, each set counting the same."""
    firsts = sorted((line["confidence"][0] if line["confidence"] else 0.0, 1 / len(run)) for run in runs for line in run)
    left = (1 - KEPT) * len(runs)
    for first, weight in firsts:
        left -= weight
        if left < 0:
            return first
    return 1.0


def fitted(runs, gold):
    """The line over the logits of the first five hits' confidences, by Newton; both kinds of queries weigh the same."""
    x, y, weights = [], [], []
    for name, run in runs.items():
        share = 1 / len(run) / sum((other in gold) == (name in gold) for other in runs)
        for line in run:
            right = gold.get(name, {}).get(line["id"], ())
            for tool, confidence in list(zip(line["ranked"], line["confidence"]))[:5]:
                if confidence < 1:
                    x.append(numpy.log(confidence / (1 - confidence)))
                    y.append(tool in right)
                    weights.append(share)
    x, y, weights = numpy.array(x), numpy.array(y, dtype=float), numpy.array(weights)
    inputs = numpy.stack([numpy.ones_like(x), x], axis=1)
    line = numpy.array([0.0, 1.0])
    for _ in range(30):
        told = 1 / (1 + numpy.exp(-inputs @ line))
        slope = (inputs * (weights * told * (1 - told))[:, None]).T @ inputs
        line += numpy.linalg.solve(slope, inputs.T @ (weights * (y - told)))
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toolcrib", type=Path, default=Path(__file__).parent.parent / "target/release/toolcrib")
    parser.add_argument("--data", type=Path, required=True, nargs="+", help="folders of sets: the public ones, and the bundle of a training that left servers out")
    parser.add_argument("--embedding-model", type=Path, help="the folder of another table than the one inside")
    parser.add_argument("--preset", choices=["default", "words"], default="default")
    arguments = parser.parse_args()
    pairs = [(catalog, queries) for catalog, queries in PAIRS if find(arguments.data, catalog) and find(arguments.data, queries)]
    sets = sorted(path for folder in arguments.data for path in folder.iterdir() if file(path, "catalog") and file(path, "queries"))
    with tempfile.TemporaryDirectory() as out:
        out = Path(out)
        own = asked(arguments, sets, out)
        foreign = asked(arguments, [paired(arguments.data, *pair, out) for pair in pairs], out)
    least, strong = constant("LEAST"), constant("STRONG")
    was = constant(CURVES[arguments.preset])
    gold = {path.name: {q["id"]: set(q["gold"]) for q in read(path, "queries")} for path in sets}
    for what, chosen in (("all", own), ("public", {name: run for name, run in own.items() if not name.startswith("left")})):
        against = {name: run for name, run in foreign.items() if what == "all" or "left" not in name}
        place = threshold(list(chosen.values()))
        bias, slope = fitted({**chosen, **against}, gold)
        print(f"{what}: {len(chosen)} sets, {len(against)} pairs; {KEPT:.0%} of what can be served reach {place:.3f}, {share(against, place):.1%} of what cannot")
        print(f"  from {least} on: {share(chosen, least):.1%} and {share(against, least):.1%}; from {strong} on: {share(chosen, strong):.1%} and {share(against, strong):.1%}")
        print(f"  the line over the logits: bias {bias:.2f}, slope {slope:.2f}; the curve is then bias {bias + slope * was[0]:.2f}, slope {slope * was[1]:.2f}")


if __name__ == "__main__":
    main()
