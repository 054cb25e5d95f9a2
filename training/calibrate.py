"""Checks and fits the calibration of confidences. Queries are run on their own catalog, and on a catalog that cannot serve them.

Runs `toolcrib eval` on the datasets and on pairs of a catalog with queries about another subject, and reads the confidences from its run
files. Prints three results: the thresholds at which 95 % and 98 % of the servable queries are answered, the share of the unservable queries
above them, and a line that is fitted to the logits of the confidences. If the line has slope 1 and bias 0, the confidences are right: a
confidence is the share of hits that serve their query.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy

from data import lines

# Pairs of a catalog and a set of queries that none of its tools can serve. MCP reference servers (files, Git, time),
# maps and browsers cannot serve queries for shopping plugins or weather APIs, and plugins cannot serve queries for AWS
# and GitHub.
PAIRS = [(catalog, queries) for catalog in ("mcpproxy_golden", "mcptoolbench") for queries in ("toollens", "ultratool", "seal_tools", "metatool", "stabletoolbench", "bfcl")]
PAIRS += [(catalog, "mcpproxy_golden") for catalog in ("metatool", "toollens", "ultratool")]
PAIRS += [("left-octokit", queries) for queries in ("metatool", "toollens", "bfcl", "ultratool", "seal_tools")]
PAIRS += [(catalog, queries) for catalog in ("metatool", "toollens", "ultratool", "mcptoolbench", "mcpproxy_golden") for queries in ("left-botocore", "left-octokit")]
PAIRS += [("left-botocore", queries) for queries in ("metatool", "toollens", "bfcl")]
RANK = Path(__file__).parent.parent / "crates/toolcrib-core/src/rank"
KEPT = (0.95, 0.98)


def constant(name):
    """Reads a number from `fit.rs`."""
    source = (RANK / "fit.rs").read_text(encoding="utf-8")
    return float(re.search(rf"^(?:pub\(super\) )?const {name}: \w+ = (.+);$", source, re.M)[1])


def find(folders, name):
    return next((folder / name for folder in folders if (folder / name).is_dir()), None)


def file(folder, name):
    return next((path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()), None)


def read(folder, name):
    return lines(file(folder, name))


def paired(folders, catalog, queries, out):
    """Writes a dataset with the tools of `catalog` and the queries of `queries`, for which no tool is relevant."""
    into = out / f"{catalog}+{queries}"
    into.mkdir()
    for name, written in (("catalog", read(find(folders, catalog), "catalog")), ("queries", [{**q, "gold": []} for q in read(find(folders, queries), "queries")])):
        (into / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in written), encoding="utf-8")
    return into


def run_eval(arguments, sets, out):
    """Runs `toolcrib eval` and returns the run of every dataset, by name."""
    command = [arguments.toolcrib, "eval", "--json", "--run-file", out / "run.jsonl", *sets]
    command += ["--preset", arguments.preset, "--tier", arguments.tier]
    command += ["--embedding-model", arguments.embedding_model] if arguments.embedding_model else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    runs = {}
    for line in lines(out / "run.jsonl"):
        # A query without hits has no confidence in the run file, so an empty list is the default.
        runs.setdefault(line["dataset"], []).append({"confidence": [], **line})
    return runs


def answered(run, threshold):
    return sum(bool(line["confidence"]) and line["confidence"][0] >= threshold for line in run) / len(run)


def share(runs, place):
    return sum(answered(run, place) for run in runs.values()) / len(runs)


def threshold(runs, kept):
    """The confidence that this share of the queries reaches, with equal weight for each dataset."""
    firsts = sorted((line["confidence"][0] if line["confidence"] else 0.0, 1 / len(run)) for run in runs for line in run)
    left = (1 - kept) * len(runs)
    for first, weight in firsts:
        left -= weight
        if left < 0:
            return first
    return 1.0


def fitted(runs, gold):
    """Fits a line to the logits of the confidences of the first five hits, by Newton's method. Servable and unservable queries have equal weight."""
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
    parser.add_argument("--data", type=Path, required=True, nargs="+", help="folders of datasets: the public ones, and the bundle of a training that left servers out")
    parser.add_argument("--embedding-model", type=Path, help="the folder of a table and an encoder to use instead of the built-in ones")
    parser.add_argument("--tier", choices=["auto", "table", "deep"], default="auto")
    parser.add_argument("--preset", choices=["default", "words"], default="default")
    arguments = parser.parse_args()
    pairs = [(catalog, queries) for catalog, queries in PAIRS if find(arguments.data, catalog) and find(arguments.data, queries)]
    sets = sorted(path for folder in arguments.data for path in folder.iterdir() if file(path, "catalog") and file(path, "queries"))
    with tempfile.TemporaryDirectory() as out:
        out = Path(out)
        own = run_eval(arguments, sets, out)
        foreign = run_eval(arguments, [paired(arguments.data, *pair, out) for pair in pairs], out)
    least, strong = constant("MIN_CONFIDENCE"), constant("STRONG_CONFIDENCE")
    gold = {path.name: {q["id"]: set(q["gold"]) for q in read(path, "queries")} for path in sets}
    for what, chosen in (("all", own), ("public", {name: run for name, run in own.items() if not name.startswith("left")})):
        against = {name: run for name, run in foreign.items() if what == "all" or "left" not in name}
        bias, slope = fitted({**chosen, **against}, gold)
        print(f"{what}: {len(chosen)} sets, {len(against)} pairs")
        for kept in KEPT:
            place = threshold(list(chosen.values()), kept)
            print(f"  {kept:.0%} of the servable queries reach {place:.3f}, and {share(against, place):.1%} of the unservable ones")
        print(f"  at least {least}: {share(chosen, least):.1%} and {share(against, least):.1%}; at least {strong}: {share(chosen, strong):.1%} and {share(against, strong):.1%}")
        print(f"  the line over the logits: bias {bias:.2f}, slope {slope:.2f}")


if __name__ == "__main__":
    main()
