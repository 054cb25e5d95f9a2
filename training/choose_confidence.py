"""Compares constants of the confidence in the deep tier, on the evidence that `toolcrib eval --run-file` writes.

The datasets, pairs of a catalog with queries about another subject, and `refusals/` are evaluated once. The confidence of each first hit is
then computed again with other constants than those in `confidence.rs`. For each choice, this prints the share of unservable queries that are
answered if 98 % of the servable ones are, and the same shares in `refusals/` at that threshold. To choose without a catalog, leave its folder
out with `--without`.
"""

import argparse
import re
import tempfile
from pathlib import Path

import numpy

from calibrate import PAIRS, RANK, file, find, paired, read, run_eval

NAMES = ("bias", "similarity", "background", "general", "gap")
# The constants that are varied, and the factors. The gap of a first hit is nearly always 0.
VARIED, FACTORS = ("similarity", "background", "general"), (0.5, 0.75, 1.5, 2)
KEPT = 0.98


def constants():
    source = (RANK / "confidence.rs").read_text(encoding="utf-8")
    model = re.search(r"const DEEP_MODEL: SimilarityModel =\s*SimilarityModel \{(.+?)\};", source, re.S)[1]
    coverage = re.search(r"const COVERAGE_CURVE: LogisticCurve = LogisticCurve \{ bias: (.+), slope: (.+) \};", source)
    return {name: float(re.search(rf"\b{name}: ([-\d.]+)", model)[1]) for name in NAMES}, (float(coverage[1]), float(coverage[2]))


def logits(run, chosen, coverage):
    """The logit of the confidence of each first hit. A query without hits has none, so it is refused."""
    found = []
    for line in run:
        evidence = next(iter(line.get("evidence", [])), None)
        if not evidence:
            found.append(-numpy.inf)
        elif line["confidence"][0] >= 1:
            found.append(numpy.inf)
        else:
            by_coverage = coverage[0] + coverage[1] * evidence["coverage"]
            similar = evidence["similarity"]
            weighted = chosen["bias"] + sum(chosen[name] * evidence[name] for name in ("background", "general")) - chosen["gap"] * evidence["gap"]
            found.append(by_coverage if similar is None else max(by_coverage, weighted + chosen["similarity"] * similar))
    return numpy.array(found)


def shares(own, foreign, refusals, chosen, coverage):
    """The threshold, the share of answered unservable queries, and the shares of servable and unservable ones in `refusals/`."""
    kept = [logits(run, chosen, coverage) for run in own]
    weight = numpy.concatenate([numpy.full(len(run), 1 / len(run)) for run in kept])
    values = numpy.concatenate(kept)
    order = values.argsort()
    threshold = values[order][numpy.searchsorted(numpy.cumsum(weight[order]), (1 - KEPT) * len(kept))]
    answered = lambda runs: numpy.mean([(logits(run, chosen, coverage) >= threshold).mean() for run in runs if run])
    return 1 / (1 + numpy.exp(-threshold)), answered(foreign), answered([run for run, _ in refusals]), answered([run for _, run in refusals])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toolcrib", type=Path, default=Path(__file__).parent.parent / "target/release/toolcrib")
    parser.add_argument("--data", type=Path, required=True, nargs="+", help="folders of datasets, as for calibrate.py")
    parser.add_argument("--embedding-model", type=Path, help="the folder of a table and an encoder that were trained on none of the datasets")
    parser.add_argument("--without", default=[], nargs="+", help="names of catalogs to leave out")
    arguments = parser.parse_args()
    arguments.tier, arguments.preset = "deep", "default"
    pairs = [pair for pair in PAIRS if all(find(arguments.data, name) for name in pair) and not set(pair) & set(arguments.without)]
    folders = [path for folder in [*arguments.data, Path(__file__).parent / "refusals"] for path in sorted(folder.iterdir())]
    sets = [path for path in folders if path.name not in arguments.without and file(path, "catalog") and file(path, "queries")]
    with tempfile.TemporaryDirectory() as out:
        out = Path(out)
        runs = run_eval(arguments, sets, out)
        foreign = list(run_eval(arguments, [paired(arguments.data, *pair, out) for pair in pairs], out).values())
    own, refusals = [], []
    for path in sets:
        served = {query["id"] for query in read(path, "queries") if query["gold"]}
        if path.parent.name != "refusals":
            own.append([line for line in runs[path.name] if line["id"] in served])
            continue
        refusals.append(([line for line in runs[path.name] if line["id"] in served], [line for line in runs[path.name] if line["id"] not in served]))
    chosen, coverage = constants()
    print(f"{len(own)} sets, {len(foreign)} pairs, {len(refusals)} catalogs of refusals/")
    for name, factor in [("bias", 1), *((name, factor) for name in VARIED for factor in FACTORS)]:
        tried = {**chosen, name: chosen[name] * factor}
        threshold, unservable, served, not_served = shares(own, foreign, refusals, tried, coverage)
        what = "as they are" if factor == 1 else f"{name} {tried[name]:.2f}"
        print(f"{what:18} threshold {threshold:.3f}: {unservable:.1%} of unservable queries answered; in refusals/ {served:.1%} of servable, {not_served:.1%} of unservable ones", flush=True)


if __name__ == "__main__":
    main()
