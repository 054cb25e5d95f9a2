"""Writes the weights of an encoder in the format of `toolcrib-embed`, which `crates/toolcrib-embed/src/encoder/weights_file.rs` describes.

The input is a BertModel of transformers as safetensors, in half or single precision, and its vocabulary. Matrices and word embeddings become
int8, with one scale per output or word. `general.py` adds the probes for general tools.
"""

import argparse
import hashlib
import struct
import unicodedata
from pathlib import Path

import numpy
from safetensors.numpy import load_file

# Number of outputs in a panel of the packed layout.
PANEL = 16
ALIGNMENT = 64
MAGIC = b"TCRIBEN2"
# Format of the numbers in the header.
NUMBERS = "<10I"
# Maximum number of tokens of a text. `toolcrib-core` uses at most this many.
POSITIONS = 128


def quantised(rows):
    """Returns the int8 codes of each row and its scale.

    A smaller scale that clips the largest weights, chosen by the squared error, was tried: the vectors of MiniLM were not closer to the original.
    """
    scales = (numpy.abs(rows).max(1) / 127).astype("<f4")
    steps = numpy.where(scales > 0, scales, 1)[:, None]
    return numpy.clip(numpy.rint(rows / steps), -127, 127).astype("i1"), scales


def packed(codes):
    """Arranges the codes of a matrix in panels of 16 outputs, in which the two weights of a pair of inputs are adjacent."""
    outputs, inputs = codes.shape
    return codes.reshape(outputs // PANEL, PANEL, inputs // 2, 2).transpose(0, 2, 1, 3)


def is_used(entry):
    """Whether an entry of the vocabulary can occur in a text that the encoder is used for.

    The entries that BERT reserved, and those with letters of other scripts than Latin, Cyrillic and Greek, are dropped, because queries in
    other scripts are ranked without the encoder. Words of tools in other scripts are unknown.
    """
    if entry.startswith("[unused"):
        return False
    letters = [unicodedata.name(c, "").split(" ")[0] for c in entry if c.isalpha()]
    return all(script in ("LATIN", "CYRILLIC", "GREEK") for script in letters)


class Model:
    """The tensors of a BertModel, in single precision, without the rows that the encoder does not use, and its vocabulary."""

    def __init__(self, path, vocabulary):
        path = path / "model.safetensors" if path.is_dir() else path
        tensors = load_file(path)
        self.tensors = {name.removeprefix("bert."): tensor.astype("f4") for name, tensor in tensors.items() if tensor.dtype.kind == "f"}
        entries = vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        words = self["embeddings.word_embeddings.weight"]
        if len(entries) != len(words):
            raise SystemExit(f"{vocabulary} has {len(entries)} entries, but the model has {len(words)} word embeddings")
        kept = [at for at, entry in enumerate(entries) if is_used(entry)]
        self.entries = [entries[at] for at in kept]
        self.tensors["embeddings.word_embeddings.weight"] = words[kept]
        self.tensors["embeddings.position_embeddings.weight"] = self["embeddings.position_embeddings.weight"][:POSITIONS]

    def __getitem__(self, name):
        return self.tensors[name]

    def layers(self):
        return 1 + max(int(name.split(".")[2]) for name in self.tensors if name.startswith("encoder.layer."))

    def positions(self):
        """Returns the position embeddings, to which the embedding of token type 0 is added."""
        return self["embeddings.position_embeddings.weight"] + self["embeddings.token_type_embeddings.weight"][0]

    def norm(self, name):
        return [numpy.concatenate([self[f"{name}.weight"], self[f"{name}.bias"]]).astype("<f4")]

    def matrix(self, *names):
        """Returns the sections of a matrix. The outputs of several matrices become the outputs of one."""
        codes, scales = quantised(numpy.concatenate([self[f"{name}.weight"] for name in names]))
        biases = numpy.concatenate([self[f"{name}.bias"] for name in names]).astype("<f4")
        return [scales, biases, packed(codes)]


def sections(model, vocabulary):
    words, word_scales = quantised(model["embeddings.word_embeddings.weight"])
    parts = [vocabulary, word_scales, model.positions().astype("<f4"), *model.norm("embeddings.LayerNorm")]
    for layer in range(model.layers()):
        at = f"encoder.layer.{layer}"
        parts += model.matrix(*(f"{at}.attention.self.{name}" for name in ("query", "key", "value")))
        parts += model.matrix(f"{at}.attention.output.dense") + model.norm(f"{at}.attention.output.LayerNorm")
        parts += model.matrix(f"{at}.intermediate.dense") + model.matrix(f"{at}.output.dense") + model.norm(f"{at}.output.LayerNorm")
    parts.append(words)
    return padded(parts)


def padded(parts):
    contents = [part if isinstance(part, bytes) else part.tobytes() for part in parts]
    return b"".join(part + bytes(-len(part) % ALIGNMENT) for part in contents)


def write(path, numbers, payload):
    """Writes an encoder file, and returns its id."""
    sizes = struct.pack(NUMBERS, *numbers)
    name = hashlib.sha256(sizes + payload).digest()[:16]
    path.write_bytes((MAGIC + sizes + name).ljust(ALIGNMENT, b"\0") + payload)
    return name.hex()


def add_general_types(path, names, request_probes, tool_probes, prototypes, prototype_weights):
    """Adds probes to an encoder file, or replaces those that it has. A row of an array has the weights of a probe, and its bias last.

    The prototypes are vectors of length 1, and `prototype_weights` has the weights of all prototypes for each type.
    """
    contents = path.read_bytes()
    if not contents.startswith(MAGIC):
        raise SystemExit(f"{path} does not begin with {MAGIC.decode()}")
    *numbers, types, names_bytes, count = struct.unpack_from(NUMBERS, contents, len(MAGIC))
    hidden = numbers[1]
    added = [names_bytes, *[4 * types * (hidden + 1)] * 2, 4 * types * count, count * hidden] if types else []
    payload = contents[ALIGNMENT : len(contents) - sum(size + -size % ALIGNMENT for size in added)]
    text = "\n".join(names).encode()
    floats = [array.astype("<f4") for array in (request_probes, tool_probes, prototype_weights)]
    codes, _ = quantised(prototypes)
    payload += padded([text, *floats, codes])
    name = write(path, [*numbers, len(names), len(text), len(prototypes)], payload)
    print(f"{len(names)} types of general tools, {len(prototypes)} prototypes, id {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a .safetensors file, or the folder of a model")
    parser.add_argument("--vocab", type=Path, required=True, help="the vocab.txt of the model, one entry per line")
    parser.add_argument("--heads", type=int, default=12, help="number of attention heads, which the tensors do not tell")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    model = Model(arguments.model, arguments.vocab)
    vocabulary = "\n".join(model.entries).encode()
    words, entries = model["embeddings.word_embeddings.weight"], len(model.entries)
    hidden, ffn = words.shape[1], len(model["encoder.layer.0.intermediate.dense.weight"])
    positions = len(model["embeddings.position_embeddings.weight"])
    numbers = [model.layers(), hidden, arguments.heads, ffn, entries, positions, len(vocabulary), 0, 0, 0]
    name = write(arguments.out, numbers, sections(model, vocabulary))
    print(f"{model.layers()} layers of {hidden}, {entries} words, {arguments.out.stat().st_size} bytes, id {name}")


if __name__ == "__main__":
    main()
