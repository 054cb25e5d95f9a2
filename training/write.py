"""Writes a trained table in the format of `toolcrib-embed`, which `crates/toolcrib-embed/src/table_file.rs` describes."""

import argparse
import struct
from pathlib import Path

import numpy

# Weight of a title relative to the name. It is not trained, because the training data has no titles. Like the name, a
# title describes the tool, but it is slightly less informative.
TITLE = 0.6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="the .npz that train.py wrote")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "crates/toolcrib-embed/weights/table.bin")
    arguments = parser.parse_args()
    table = numpy.load(arguments.table)
    entries = str(table["entries"]).encode()
    name, description, parameters, parameter_text, server = table["fields"].astype("<f4")
    fields = numpy.array([name, TITLE * name, description, parameters, parameter_text, server], dtype="<f4")
    rows = table["rows"].astype("i1")
    parts = [b"TCRIBEM2", struct.pack("<4I", rows.shape[1], rows.shape[0], len(entries), len(fields))]
    parts += [fields.tobytes(), entries, table["asked"].astype("<f4").tobytes(), table["told"].astype("<f4").tobytes(), rows.tobytes()]
    arguments.out.write_bytes(b"".join(parts))
    print(f"{rows.shape[0]} entries of {rows.shape[1]}, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
