# SPDX-License-Identifier: Apache-2.0
"""bench_rules.py - the shipped rules in the dialects of other tools, and more rules.

Other tools get an easier task than Holdfast: they only have to say that some rule
matches a line, and they get what slows them down least.  Guards (the `^[^#'"`]*?' that
most rules begin with), looking ahead and behind, and `unless' are left out, which lets
them search for plain words; `.{0,60}' becomes `.*', without which grep -E needs minutes
for a megabyte.
"""
import json
import os
import random
import re
import subprocess


class Refused(Exception):
    """A pattern has no counterpart in a dialect."""


def load(holdfast):
    out = subprocess.run([holdfast, "rules", "list", "--json"], check=True,
                         stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in out.splitlines()]


def faulty(rules):
    """Rules about failures; the others mark structure, or say that nothing is wrong."""
    return [r for r in rules if r["role"] not in ("benign", "context")]


def write_literals(rules, path):
    """The plain words that the scanner looks for."""
    words = sorted({w for r in faulty(rules) for w in r["literals"]})
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(w + "\n" for w in words)


def write_samples(rules, path, most=None):
    """One error message a line, from the rules' examples."""
    lines = sorted({e for r in faulty(rules) for e in r["examples"]
                    if e.strip() and "\n" not in e})
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in lines[:most])


def _group_end(pattern, at):
    """The position behind the group that opens at `at'."""
    depth = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            at += 1
        elif c == "[":
            at = _class_end(pattern, at) - 1
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise Refused(pattern)


def _class_end(pattern, at):
    at += 1
    if pattern[at] == "^":
        at += 1
    if pattern[at] == "]":      # in the first place a plain one
        at += 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _tokens(pattern):
    """The parts of a pattern: escapes, classes, (, ), and single characters.  Looking
    around is dropped; groups lose their names."""
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            n = 4 if pattern[at + 1] == "x" else 2
            yield pattern[at:at + n]
            at += n
        elif c == "[":
            end = _class_end(pattern, at)
            yield pattern[at:end]
            at = end
        elif re.match(r"\(\?<?[=!]", pattern[at:]):
            at = _group_end(pattern, at)
        elif c == "(":
            m = re.match(r"\(\?(?:<\w+>|P<\w+>|:|>)|\((?!\?)", pattern[at:])
            if m is None:
                raise Refused(pattern)
            yield "("
            at += m.end()
        else:
            yield c
            at += 1


def _plain(rule):
    """The tokens without guard and flags, and whether case does not count."""
    p = rule["match"]
    fold = p.startswith("(?i)")
    tokens = list(_tokens(p[4:] if fold else p))
    m = re.match(r"\^\[\^(?:\\.|[^\]\\])*\](?:\*|\{0,\d+\})\??", "".join(tokens))
    while m and len("".join(tokens)) > len(m.string) - m.end():
        tokens.pop(0)
    return tokens, fold


def _repeats(tokens):
    """Long bounded repetitions, {0,60}, become * or +."""
    at = 0
    while at < len(tokens):
        m = re.match(r"\{([01]),(\d\d+)?\}", "".join(tokens[at:at + 8]))
        if tokens[at] == "{" and m:
            tokens[at:at + m.end()] = ["+" if m[1] == "1" else "*"]
        at += 1
    return tokens


def for_rust(rule):
    """ripgrep, Hyperscan: nearly PCRE."""
    tokens, fold = _plain(rule)
    out = "".join("(?:" if t == "(" else t for t in _repeats(tokens))
    out = re.sub(r"(?<!\\)([*+?}])\+", r"\1", out)
    return ("(?i)" if fold else "") + out


def _posix_class(token):
    out = token[:1]
    rest = token[1:-1]
    if rest.startswith("^"):
        out, rest = "[^", rest[1:]
    inside, at = "", 0
    names = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}
    first = last = ""
    while at < len(rest):
        c = rest[at]
        if c == "\\":
            at += 1
            c = rest[at]
            if c in names:
                inside += names[c]
            elif c == "]":
                first = "]"
            elif c == "-":
                last = "-"
            elif c.isalnum():
                raise Refused(token)
            else:
                inside += c
        elif c == "]":
            first = "]"
        else:
            inside += c
        at += 1
    return out + first + inside + last + "]"


def for_grep(rule):
    """grep -E: no lazy repetition, no \\d, other rules inside brackets."""
    tokens, fold = _plain(rule)
    out = []
    for t in _repeats(tokens):
        if t == "?" and out and out[-1] in ("*", "+", "?", "}"):
            continue
        if t == "\\d":
            t = "[0-9]"
        elif t.startswith("["):
            t = _posix_class(t)
        elif fold or (t[0] == "\\" and t[1].isalnum() and t[1] not in "bBwWsS"):
            raise Refused(rule["match"])
        out.append(t)
    return "".join(out)


def _accepted(patterns, command, path):
    """Those that a tool takes, found by halving."""
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(p + "\n" for p in patterns)
    if command is None or not patterns:
        return patterns
    rc = subprocess.run([*command, "-f", path, os.devnull], stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if rc < 2:
        return patterns
    half = len(patterns) // 2
    if half == 0:
        return []
    return (_accepted(patterns[:half], command, path) +
            _accepted(patterns[half:], command, path))


def write_patterns(rules, dialect, path, command=None):
    """Writes the patterns that a tool takes, one a line; returns how many it does and
    how many it does not.  command: the tool, to which -f PATTERNS FILE is added."""
    patterns = []
    for r in faulty(rules):
        try:
            p = dialect(r)
        except Refused:
            continue
        if p:
            patterns.append(p)
    good = _accepted(patterns, command, path)
    _accepted(good, None, path)
    return len(good), len(faulty(rules)) - len(good)


PARTS = ["ledger", "tokenizer", "curriculum", "packer", "sampler", "router", "expert",
         "mixer", "archive", "vault", "courier", "replica", "broker", "planner", "spooler",
         "indexer", "shuffler", "sharder", "prefetch", "manifest", "quota", "lease",
         "tenant", "gateway", "beacon"]
THINGS = ["segment", "cursor", "bundle", "partition", "snapshot", "envelope", "window",
          "mirror", "catalogue", "frontier", "checksum table", "handle", "epoch map",
          "stripe", "volume", "ticket"]
EVENTS = ["vanished while it was read", "does not match its digest", "was revoked",
          "has no owner", "ended too early", "cannot be rebuilt", "is older than its log",
          "was written twice", "refused the join", "lost its quorum"]


def site_rules(count, reasons, seed=1):
    """Rules as a site would write them, about its own software."""
    rng = random.Random(seed)
    combos = [(p, t, e) for p in PARTS for t in THINGS for e in EVENTS]
    rules = []
    for i, (part, thing, event) in enumerate(rng.sample(combos, count)):
        camel = (part + " " + thing).title().replace(" ", "")
        match = [
            rf"{part}: {thing} (?<path>\S+) {event}",
            rf"\[{part}\] (?:fatal|panic): {thing} \d+ {event}",
            rf"{camel}(?:Error|Failure): .*{event}",
            rf"^{part.upper()}-{1000 + i}\b.*{thing}",
            rf"{part}d\[(?<pid>\d+)\]: {thing} of rank (?<rank>\d+) {event}",
        ][i % 5]
        rules.append({"id": f"site-{i}", "reason": reasons[i % len(reasons)],
                      "role": "either" if i % 3 else "symptom", "match": match})
    return rules


def write_rules(path, rules):
    """JSON is YAML as well."""
    with open(path, "w", encoding="utf-8") as f:
        for r in rules:
            f.write("- " + json.dumps(r) + "\n")


def write_site(directory, rules, count):
    """A directory for --rules that adds site rules to the shipped ones."""
    os.mkdir(directory)
    reasons = sorted({r["reason"] for r in faulty(rules) if r["reason"]})
    write_rules(os.path.join(directory, "site.yaml"), site_rules(count, reasons))
