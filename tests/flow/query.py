#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""query.py FILE EXPRESSION: a Python expression over a JSON or JSON Lines file.

`d' is the object of a .json file, `j' the list of records of a .jsonl file (a
torn last line is left out) and of(TYPE) those of one type.  A true or false value
becomes the exit status, 0 or 1; everything else is printed.
"""
import json
import sys

path, expression = sys.argv[1:]
scope = {}
try:
    with open(path, encoding="utf-8") as f:
        if path.endswith(".jsonl"):
            lines = [line for line in f if line.endswith("\n")]
            scope["j"] = [json.loads(line) for line in lines]
            scope["of"] = lambda kind: [r for r in scope["j"] if r["type"] == kind]
        else:
            scope["d"] = json.load(f)
    value = eval(" ".join(expression.split()), scope)
except (OSError, ValueError, LookupError, TypeError, AttributeError) as e:
    sys.exit(f"{path}: {expression}: {type(e).__name__}: {e}")
if value is True or value is False:
    if not value:
        print(json.dumps(scope["d"] if "d" in scope else scope["j"][-8:], indent=1))
    sys.exit(0 if value else 1)
print(value)
