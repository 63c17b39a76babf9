#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_table.py [RESULT.json]: rows of measurements, judged and in columns.

A row holds one value a round, each a ratio within that round where it can be one: the
middle one counts.  By itself it prints what `bench.py --json' wrote.
"""
import json
import statistics
import sys

COMPARE = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
           "==": lambda a, b: a == b}


class Table:
    def __init__(self, judged=True):
        self.judged = judged
        self.head = {}
        self.rows = []
        self.section = ""

    def add(self, what, values, unit="x", asked=None, note=""):
        """asked: (">=", 0.7).  values: one a round; none with a note says why not."""
        if not isinstance(values, list):
            values = [values]
        number = bool(values) and not isinstance(values[0], str)
        row = {"section": self.section, "what": what, "unit": unit, "note": note,
               "median": (statistics.median(values) if number else
                          values[0] if values else None),
               "low": min(values) if number else None,
               "high": max(values) if number else None,
               "asked": f"{asked[0]} {asked[1]}" if asked else None, "met": None}
        if asked and values and self.judged:
            row["met"] = COMPARE[asked[0]](row["median"], asked[1])
        self.rows.append(row)

    def result(self):
        return {"schema": "holdfast.bench/1", **self.head, "rows": self.rows}


def number(v, unit):
    if v is None or isinstance(v, str):
        return v or "-"
    digits = 2 if abs(v) < 10 else 1 if abs(v) < 100 else 0
    return f"{v:.{digits}f}" + ("" if unit == "x" else " " + unit)


def lines(result):
    """The table as text."""
    rules = f"{result['rules']} rules, " if "rules" in result else ""
    scanner = f"scanner {result['level']}, " if "level" in result else ""
    yield (f"{result['size_mb']} MB, {rules}{result['rounds']} rounds, {result['cpu']}, "
           f"{scanner}load {result['load']:.1f}")
    if result["load"] > 0.5:
        yield "The machine is busy: look at ratios of processor time, not at the clock."
    cells = []
    for r in result["rows"]:
        spread = (f"{number(r['low'], 'x')} .. {number(r['high'], 'x')}"
                  if r["low"] is not None and r["low"] != r["high"] else "")
        verdict = {True: "ok", False: "MISSED", None: ""}[r["met"]]
        cells.append((r["what"], number(r["median"], r["unit"]), spread,
                      r["asked"] or "", verdict, r["note"]))
    what, value, spread, asked = (max(len(c[i]) for c in cells) for i in range(4))
    asked = max(asked, len("asked"))
    value = max(value, len("median"))
    section = None
    for r, c in zip(result["rows"], cells):
        if r["section"] != section:
            section = r["section"]
            yield ""
            yield (f"{section:{what + 2}}  {'median':>{value}}  {'':{spread}}  "
                   f"{'asked':{asked}}").rstrip()
        yield (f"  {c[0]:{what}}  {c[1]:>{value}}  {c[2]:{spread}}  {c[3]:{asked}}  "
               f"{c[4]:6}  {c[5]}").rstrip()
    missed = sum(r["met"] is False for r in result["rows"])
    asked_for = sum(r["met"] is not None for r in result["rows"])
    yield ""
    yield (f"{asked_for - missed} of {asked_for} numbers reached" if asked_for else
           "no number was judged")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") if len(sys.argv) > 1 else sys.stdin as f:
        print("\n".join(lines(json.load(f))))
