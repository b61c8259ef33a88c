"""Feeds hostile text to a tool: each must end with an error, within seconds.

usage: check_hostile.py MESHWORK_OPT
"""
import subprocess
import sys

DEEP = 20000
DIMS = "#transformer.dims<a, b>"
TYPE = f"tensor<2x3xf32, {DIMS}>"
FUNCTION = f"func.func @f(%x: {TYPE}) {{\n  BODY\n  return\n}}\n"


def body(op):
    return FUNCTION.replace("BODY", op)


CASES = {
    "nested arrays": '"m.x"() {a = ' + "[" * DEEP + "]" * DEEP + "} : () -> ()",
    "nested types": "func.func private @f(" + "tuple<" * DEEP + ">" * DEEP + ")",
    "nested regions": "module {" * DEEP + "}" * DEEP,
    "nested regions behind comments": "module { // >>>\n" * DEEP + "}" * DEEP,
    "nested regions behind strings": 'module attributes {a = "}}>"} {\n' * DEEP + "}" * DEEP,
    "nested, never closed": "module {" * DEEP,
    "elements overflow": f"func.func private @f(tensor<99999999999x99999999999xf32, {DIMS}>)",
    "size overflows": f"func.func private @f(tensor<99999999999999999999x2xf32, {DIMS}>)",
    "negative size": f"func.func private @f(tensor<-1x2xf32, {DIMS}>)",
    "empty": f"func.func private @f(tensor<0x2xf32, {DIMS}>)",
    "many dims, few names": "func.func private @f(tensor<" + "1x" * 1000 + f"f32, {DIMS}>)",
    "parameter of unknown size": 'func.func @f() {\n  %0 = transformer.parameter "w" init <constant, 1.0> : tensor<?x2xf32, ' + DIMS + ">\n  return\n}",
    "file shape overflows": 'func.func @f() {\n  %0 = transformer.parameter "w" init <constant, 1.0> file_shape [9223372036854775807, 9223372036854775807] : ' + TYPE + "\n  return\n}",
    **{f"files: {text}": 'func.func @f() {\n  %0 = transformer.parameter "w" init <constant, 1.0> files [#transformer.file<' + text + ">] : " + TYPE + "\n  return\n}" for text in (
        '"w.{}" along 9223372036854775807', '"w.{}" along 2147483647', '"w.{}" along -2147483648', '"w.{}" along 0 from -1', '"w.{}" along 0 from 9223372036854775807',
        '"w.{}" along 0 at [9223372036854775807, 1] size [9223372036854775807, 1]', '"w" at [0] size [2]', '"w" size [-1, -6]', '"w" shape [4611686018427387904, 4611686018427387904]',
        '"w" offset [0, 0]', '"w.{}"', '"{}{}" along 0', '""', '')},
    "equation of nothing": body(f'%0 = transformer.contract "" %x, %x : {TYPE}, {TYPE} -> {TYPE}'),
    "equation of many letters": body(f'%0 = transformer.contract "{"ab" * 5000},ab->ab" %x, %x : {TYPE}, {TYPE} -> {TYPE}'),
    "slice far out": body(f'%0 = transformer.slice %x dim "a" offset 9223372036854775807 : {TYPE} -> {TYPE}'),
    "slice far before": body(f'%0 = transformer.slice %x dim "a" offset -9223372036854775808 : {TYPE} -> {TYPE}'),
    "roll far": body(f"%0 = transformer.roll %x by -9223372036854775808 : {TYPE}"),
    "attention without heads": body(f"%0:2 = transformer.attention %x, %x, %x scale 1.0 : {TYPE}, {TYPE}, {TYPE} -> {TYPE}, {TYPE}"),
    "map without body": body(f'%0 = "transformer.map"(%x) ({{}}) : ({TYPE}) -> {TYPE}'),
    "map of an empty block": body(f'%0 = "transformer.map"(%x) ({{\n  ^bb0:\n  }}) : ({TYPE}) -> {TYPE}'),
    "fused yields numbers": body(f'%0 = "transformer.fused"(%x) <{{rows = #transformer.dims<a>, cols = #transformer.dims<b>}}> ({{\n  ^bb0(%y: {TYPE}):\n    %c = arith.constant 1.0 : f32\n    "transformer.yield"(%c) : (f32) -> ()\n  }}) : ({TYPE}) -> {TYPE}'),
    "attributes missing": body(f'%0 = "transformer.contract"(%x, %x) : ({TYPE}, {TYPE}) -> {TYPE}'),
    "attributes of the wrong kind": body(f'%0 = "transformer.roll"(%x) <{{shift = "two"}}> : ({TYPE}) -> {TYPE}'),
    "operands missing": body(f'%0 = "transformer.add"(%x) : ({TYPE}) -> {TYPE}'),
    "not text": "\0\1\2\3" * 1000,
    "bytecode cut short": "ML\xefR\x06",
}


def main():
    failures = 0
    for name, text in CASES.items():
        run = subprocess.run([sys.argv[1]], input=text.encode("latin-1"), capture_output=True, timeout=60)
        # 65: refused before it is parsed.
        if run.returncode not in (1, 65) or b"error:" not in run.stderr:
            failures += 1
            print(f"{name}: exit code {run.returncode}, expected 1 or 65 and an error\n{run.stderr[:500].decode(errors='replace')}")
    print(f"{len(CASES)} cases, {failures} failed")
    return failures > 0


sys.exit(main())
