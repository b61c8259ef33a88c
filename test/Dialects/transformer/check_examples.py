"""Compares the ops and labels in .td files with those that tests mention.

usage: check_examples.py DIALECT_FOLDER TEST_FOLDER AT_LEAST

The folder's name is the dialect's; fewer ops than AT_LEAST fail, too.
"""
import pathlib
import re
import sys

dialect, tests = map(pathlib.Path, sys.argv[1:3])
prefix = dialect.name


def ops():
    """(mnemonic, labels of its description)"""
    for path in sorted(dialect.glob("*.td")):
        text = path.read_text()
        inherited = {}
        for name, body in re.findall(r"^class (\w+)<((?:(?!^class |^def ).)*?)^}", text, re.M | re.S):
            inherited[name] = body
        for match in re.finditer(rf'^def {prefix.capitalize()}_\w+Op\s*:\s*(\w+)<"(\w+)"(.*?)(?=^def |^class |^#endif|\Z)', text, re.M | re.S):
            base, name, body = match.groups()
            body += inherited.get(base, "")
            # "(C1)" where a description begins a line with it.
            yield name, sorted(set(re.findall(r"\((C\d+)\)", body)))


def main():
    round_trip = "".join(path.read_text() for path in tests.glob("roundtrip*.mlir"))
    invalid = "".join(path.read_text() for path in tests.glob("invalid*.mlir"))
    # A case: "'transformer.map' op (C1) ..."
    cases = set(re.findall(rf"'{prefix}\.(\w+)' op \((C\d+)\)", invalid))
    count, missing = 0, []
    for name, labels in ops():
        count += 1
        if not re.search(rf"{prefix}\.{name}\b", round_trip):
            missing.append(f"{name}: no example in roundtrip*.mlir")
        missing += [f"{name}: no case for ({label}) in invalid*.mlir" for label in labels if (name, label) not in cases]
    if count < int(sys.argv[3]):
        missing.append(f"found {count} ops in {dialect}, expected at least {sys.argv[3]}")
    for line in missing:
        print(line)
    return bool(missing)


sys.exit(main())
