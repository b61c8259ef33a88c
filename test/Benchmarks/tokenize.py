#!/usr/bin/env python3
"""`meshwork tokenize` against the library that it calls, on the same documents and cores, in turns:

    test/Benchmarks/tokenize.py [--megabytes 100] [--rounds 3] [--python PYTHON]

Documents are pieces of this repository's texts, in a random order, until there are so many megabytes. The tokenizer is a
byte-level BPE that is trained on them first. PYTHON has the library `tokenizers` (else MESHWORK_PYTHON, else python3).

The library's time is that of `encode_batch_fast` alone, of documents that are in memory; ours is that of the whole command,
from JSON lines to files that are synced. Prints the ratio of the two rates, the median of the rounds (goal 0.8), and that of
the processor time of both processes, which a busy machine changes less.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MESHWORK_BIN", ROOT / "build-release" / "bin")).resolve()
GOAL = 0.8
PIECE = 4000  # characters of a document, about
TRAIN = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
made = Tokenizer(models.BPE())
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.train([sys.argv[1]], trainers.BpeTrainer(vocab_size=32000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                              show_progress=False))
made.save(sys.argv[2])
"""
ENCODE = """
import json, sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
with open(sys.argv[2]) as lines:
    texts = [json.loads(line)["text"] for line in lines]
begin, count = time.perf_counter(), 0
for i in range(0, len(texts), 2048):
    count += sum(map(len, tokenizer.encode_batch_fast(texts[i:i + 2048], add_special_tokens=False)))
print(time.perf_counter() - begin, count)
"""


def texts():
    names = subprocess.run(["git", "ls-files", "*.md", "*.cpp", "*.h", "*.py", "*.mlir"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    return "".join((ROOT / name).read_text() for name in names)


def write_documents(path, text, megabytes):
    """Number of bytes of text."""
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
    chosen, size = random.Random(1), 0
    with open(path, "w") as out:
        while size < megabytes * 1e6:
            piece = chosen.choice(pieces)
            size += len(piece.encode())
            out.write(json.dumps({"text": piece}, ensure_ascii=False) + "\n")
    return size


def library(python, folder):
    done = subprocess.run([python, "-c", ENCODE, folder / "tokenizer.json", folder / "d.jsonl"], check=True,
                          capture_output=True, text=True)
    seconds, count = done.stdout.split()
    return float(seconds), int(count)


def ours(python, folder):
    begin = time.perf_counter()
    subprocess.run([str(BIN / "meshwork"), "tokenize", folder / "tokenizer.json", folder / "d.jsonl", "-o", folder / "o.bin"],
                   check=True, capture_output=True, env={**os.environ, "MESHWORK_PYTHON": python})
    seconds = time.perf_counter() - begin
    return seconds, json.loads((folder / "o.json").read_text())["tokens"]


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(side, python, folder):
    """Seconds, processor seconds, tokens."""
    before = spent()
    seconds, count = side(python, folder)
    return seconds, spent() - before, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=os.environ.get("MESHWORK_PYTHON", "python3"))
    options = parser.parse_args()
    if subprocess.run([options.python, "-c", "import tokenizers"], capture_output=True).returncode:
        sys.exit(f"tokenize.py: {options.python} has no module 'tokenizers': name a Python that has it, --python")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = texts()
        (folder / "t.txt").write_text(text)
        subprocess.run([options.python, "-c", TRAIN, folder / "t.txt", folder / "tokenizer.json"], check=True)
        size = write_documents(folder / "d.jsonl", text, options.megabytes) / 1e6
        ratios, processor = [], []
        for _ in range(options.rounds):
            theirs, their_cpu, count = measured(library, options.python, folder)
            mine, my_cpu, found = measured(ours, options.python, folder)
            if count != found:
                sys.exit(f"tokenize.py: {found} tokens, expected the library's {count}")
            ratios.append(theirs / mine)
            processor.append(their_cpu / my_cpu)
            print(f"{size:.0f} MB, {count} tokens: encode_batch_fast {size / theirs:.2f} MB/s, meshwork tokenize "
                  f"{size / mine:.2f} MB/s, ratio {ratios[-1]:.2f}; processor seconds {their_cpu:.1f} and {my_cpu:.1f}", flush=True)
        print(f"ratio {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} (goal {GOAL}); "
              f"of processor seconds {statistics.median(processor):.2f}")


if __name__ == "__main__":
    main()
