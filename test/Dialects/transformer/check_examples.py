"""Compares the ops of a dialect, and the labels of their descriptions, with what tests mention.

usage: check_examples.py DIALECT_FOLDER TEST_FOLDER llvm-tblgen -I INCLUDE...

Ops and descriptions are what tablegen makes of FolderOps.td, classes and all. The folder's name is
the dialect's.
"""
import json
import pathlib
import re
import subprocess
import sys

dialect, tests = map(pathlib.Path, sys.argv[1:3])
prefix = dialect.name


def ops():
    """(mnemonic, description)"""
    definitions = dialect / f"{prefix.capitalize()}Ops.td"
    root = dialect.parent.parent
    dump = subprocess.run([*sys.argv[3:], "-I", root, "--dump-json", definitions], check=True, stdout=subprocess.PIPE)
    records = json.loads(dump.stdout)
    for name in records["!instanceof"]["Op"]:
        op = records[name]
        if records[op["opDialect"]["def"]]["name"] == prefix:
            yield op["opName"], op["description"]


def uses(name, text):
    return re.search(rf"\b{prefix}\.{name}\b", text)


def main():
    round_trip = "".join(path.read_text() for path in tests.glob("roundtrip*.mlir"))
    invalid = "".join(path.read_text() for path in tests.glob("invalid*.mlir"))
    # A case: "'transformer.map' op (C1) ..."
    cases = set(re.findall(rf"'{prefix}\.(\w+)' op \((C\d+)\)", invalid))
    count, missing = 0, []
    for name, description in ops():
        count += 1
        if not any(uses(name, example) for example in re.findall(r"```mlir\n(.*?)```", description, re.S)):
            missing.append(f"{name}: no example of it in its description")
        if not uses(name, round_trip):
            missing.append(f"{name}: no case in roundtrip*.mlir")
        labels = sorted(set(re.findall(r"\((C\d+)\)", description)))
        missing += [f"{name}: no case for ({label}) in invalid*.mlir" for label in labels if (name, label) not in cases]
    if not count:
        missing.append(f"found no op in {dialect}")
    for line in missing:
        print(line)
    return bool(missing)


sys.exit(main())
