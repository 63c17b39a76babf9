#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py [--size MB] [--rounds N] [--only PART] [--json] [--smoke]: what a diagnosis
and a checkpoint cost.

Decides nothing: it measures, and compares with the numbers that the design asks for.
Writes a generated log and pieces of it to a folder of its own under $TMPDIR, where they
stay in the page cache, and removes them at the end.  They are written bit by bit, as
logs are: large writes make large pages, which are mapped up to three times faster.

Every round runs each program once, pinned to the same processor; a row is the ratio of
two programs within a round.  Times are processor seconds of whole processes, start and
end included, unless `clock' is said.  ripgrep and Hyperscan get a tenth of the log and
grep -E half a MB; what ripgrep and grep need for an empty file, and Hyperscan to compile, is
taken off.  Exits with 0 when everything ran, whatever the numbers are.  Checkpoints are
measured by bench_checkpoint.py, where there is PyTorch.

Environment: top_builddir, TMPDIR.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import bench_checkpoint
import bench_rules
from bench_table import Table, lines

MB = 1000 * 1000
SMALL = 8192                    # a write, see loggen.c
SEED = "20250611"
ERRORS_PER_MILLION = "100"


class Bench:
    def __init__(self, args, folder):
        build = os.environ.get("top_builddir", os.getcwd())
        self.holdfast = os.path.join(build, "holdfast")
        self.tool = {t: os.path.join(build, "tests/bench", t) for t in
                     ("loggen", "bench_run", "bench_scan", "bench_hs")}
        self.size = args.size * MB
        self.rounds = args.rounds
        self.smoke = args.smoke
        self.folder = folder
        self.table = Table(judged=not args.smoke)
        self.notes = {}
        cpus = sorted(os.sched_getaffinity(0))
        self.one = str(cpus[-1])
        self.two = f"{cpus[-2]},{cpus[-1]}" if len(cpus) > 1 else None
        os.sched_setaffinity(0, cpus[-2:])
        # The caches of people stay as they are; no locale slows grep down.
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("HOLDFAST_") and k != "RIPGREP_CONFIG_PATH"}
        self.env.update(LC_ALL="C", XDG_CACHE_HOME=self.path("cache"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def say(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    # Files.

    def generate(self, name, size, *options):
        with open(self.path(name), "wb") as f:
            subprocess.run([self.tool["loggen"], *options, str(size), SEED], stdout=f,
                           stderr=subprocess.PIPE, check=True)

    def cut(self, name, size):
        """A piece of the log, to the end of a line."""
        with open(self.path("log"), "rb") as f, \
                open(self.path(name), "wb", buffering=0) as out:
            while size > 0:
                data = f.read(min(size, SMALL))
                size -= len(data)
                out.write(data)
            if out.tell() > 0:
                out.write(f.readline())

    def write_ranks(self, size, count):
        """A folder with a log for each rank."""
        os.mkdir(self.path("ranks"))
        self.generate("all", size, "-e", ERRORS_PER_MILLION, "-p", "none")
        with open(self.path("all"), "rb") as f:
            for rank in range(count):
                data = f.read(size // count) + f.readline()
                with open(self.path(f"ranks/rank{rank:05d}.log"), "wb",
                          buffering=0) as out:
                    for at in range(0, len(data), SMALL):
                        out.write(data[at:at + SMALL])
            self.ranks_size = f.tell()
        os.unlink(self.path("all"))

    def prepare(self):
        self.say("writing logs")
        self.dense = self.size // 50
        self.files = 256 if self.smoke else 4096
        self.generate("log", self.size)
        self.healthy = self.verdict("log")
        self.generate("log", self.size, "-e", ERRORS_PER_MILLION)
        self.write_ranks(self.size // 4, self.files)
        self.cut("tenth", self.size // 10)
        self.cut("morsel", min(MB // 2, self.size // 200))
        self.cut("1m", MB)
        self.cut("empty", 0)
        rules = bench_rules.load(self.holdfast)
        self.table.head["rules"] = len(rules)
        bench_rules.write_samples(rules, self.path("samples"), 50 if self.smoke else None)
        self.generate("mixed", self.dense, "-d", self.path("samples"))
        self.generate("repeated", self.dense, "-d", self.path("samples"), "-b", "64")
        for count in (250, 1000):
            bench_rules.write_site(self.path(f"site{count}"), rules, count)
        self.say("translating rules")
        bench_rules.write_literals(rules, self.path("words"))
        self.has_rg = shutil.which("rg") is not None
        self.has_hs = os.access(self.tool["bench_hs"], os.X_OK)
        for name, dialect, command in (
                ("rg", bench_rules.for_rust,
                 ["rg", "--no-unicode"] if self.has_rg else None),
                ("hs", bench_rules.for_rust, None),
                ("grep", bench_rules.for_grep, ["grep", "-E"])):
            some = rules[:40] if name == "hs" and self.smoke else rules
            good, bad = bench_rules.write_patterns(some, dialect, self.path(name), command)
            self.notes[name] = self.note("", good, bad)

    @staticmethod
    def note(version, good, bad):
        """How many rules a tool takes."""
        return f"{version}{good} rules" + (f", {bad} refused" if bad else "")

    # Measuring.

    def run(self, *command, cpus=None, times=1, fine=(0,), env=None):
        """What bench_run says about a command; names of files are those of prepare()."""
        out = subprocess.run([self.tool["bench_run"], "-c", cpus or self.one, "-n",
                              str(times), *command], cwd=self.folder, check=True,
                             env={**self.env, **(env or {})}, stdout=subprocess.PIPE)
        got = json.loads(out.stdout)
        if got["status"] not in fine:
            sys.exit(f"bench: {' '.join(command)}: exit status {got['status']}")
        got["cpu"] = sum(got["cpu_s"]) / times
        got["wall"] = sum(got["wall_s"]) / times
        return got

    def diagnose(self, log, *options, **how):
        return self.run(self.holdfast, "diagnose", "--json", *options, log, fine=(0, 1),
                        **how)

    def verdict(self, log):
        out = subprocess.run([self.holdfast, "diagnose", "--json", self.path(log)],
                             env=self.env, stdout=subprocess.PIPE, check=False)
        return json.loads(out.stdout)["status"] if out.returncode < 2 else "failed"

    def rate(self, got, log, start=None):
        """Bytes a second of processor time."""
        spent = got["cpu"] - (start["cpu"] if start else 0)
        # On a small piece the start may seem to be all of it.
        return os.path.getsize(self.path(log)) / max(spent, got["cpu"] / 10, 1e-6)

    def searcher(self, got, name, log, *command):
        """A tool that is slow to start: its rate without the start."""
        start = self.run(*command, "empty", fine=(0, 1))
        got[name] = self.rate(self.run(*command, log, fine=(0, 1)), log, start)

    def round_offline(self, got):
        got["wc"] = self.rate(self.run("wc", "-l", "log"), "log")
        for level in self.levels:
            touch = self.run(self.tool["bench_scan"], "-t", "log")
            got[f"touch_{level}"] = self.rate(touch, "log")
            one = self.diagnose("log", env={"HOLDFAST_SCAN": level})
            got[level] = self.rate(one, "log")
            if level == self.levels[0]:
                got["one_s"], got["rss_mb"] = one["wall"], one["rss_kb"] / 1024
        for count in (250, 1000):
            got[f"site{count}"] = self.rate(
                self.diagnose("log", "--rules", f"site{count}"), "log")
        if self.two:
            two = self.diagnose("log", cpus=self.two)
            got["two_s"], got["two_rss_mb"] = two["wall"], two["rss_kb"] / 1024
            got["two"] = self.rate(two, "log")
        got["ranks"] = self.ranks_size / self.run(
            "sh", "-c", 'ulimit -n 1024 && exec "$0" diagnose --json ranks',
            self.holdfast, fine=(0, 1))["cpu"]

    def round_others(self, got):
        if self.has_rg:
            rg = ("rg", "-j1", "--no-unicode", "-c")
            self.searcher(got, "rg", "tenth", *rg, "-f", "rg")
            self.searcher(got, "rg_words", "tenth", *rg, "-F", "-f", "words")
        self.searcher(got, "grep", "morsel", "grep", "-E", "-c", "-f", "grep")
        self.searcher(got, "grep_words", "tenth", "grep", "-F", "-c", "-f", "words")

    def round_slow(self, got):
        """What takes seconds to start, or to work itself in."""
        if self.has_hs:
            hs = json.loads(self.run(self.tool["bench_hs"], "hs", "tenth")["output"])
            got["hs"] = os.path.getsize(self.path("tenth")) / hs["cpu_s"]
            self.notes["hs"] = self.note(hs["version"].split()[0] + ", ", hs["patterns"],
                                         hs["refused"])
        for log in ("mixed", "repeated"):
            got[log] = self.rate(self.diagnose(log), log)
            if self.has_rg:
                self.searcher(got, f"rg_{log}", log, "rg", "-j1", "--no-unicode", "-c",
                              "-f", "rg")

    def round_start(self, got):
        """Middle values of some starts, on the clock and of processor time."""
        runs = {"true": ("true",)}
        for log in ("empty", "1m"):
            runs[log] = (self.holdfast, "diagnose", "--json", log)
        for count in (250, 1000):
            runs[f"1m_{count}"] = (*runs["1m"], "--rules", f"site{count}")
        for name, command in runs.items():
            got[f"{name}_ms"], got[f"{name}_cpu_ms"] = self.start(command)
        for count in (250, 1000):
            # Where nothing can be kept between runs.
            first = self.start(runs[f"1m_{count}"], env={"XDG_CACHE_HOME": "/dev/null"})
            got[f"new_{count}_cpu_ms"] = first[1] - got["1m_cpu_ms"]
            got[f"known_{count}_cpu_ms"] = got[f"1m_{count}_cpu_ms"] - got["1m_cpu_ms"]

    def start(self, command, **how):
        got = self.run(*command, times=3 if self.smoke else 15, **how)
        return [1000 * statistics.median(got[key]) for key in ("wall_s", "cpu_s")]

    def measure(self):
        """The scanner alone first, with its own rounds; then whole processes."""
        self.say("scanner alone")
        out = subprocess.run([self.tool["bench_scan"], "-n", str(self.rounds), "tenth",
                              "site250=site250", "site1000=site1000"], cwd=self.folder,
                             env=self.env, check=True, stdout=subprocess.PIPE).stdout
        self.scans = [json.loads(line) for line in out.splitlines()]
        self.levels = list(dict.fromkeys(r["level"] for r in self.scans))[:2]
        self.table.head["level"] = self.levels[0]
        self.got = []
        for i in range(self.rounds):
            self.say(f"round {i + 1} of {self.rounds}")
            self.got.append({})
            self.round_offline(self.got[-1])
            self.round_others(self.got[-1])
            if i % 3 == 0:
                self.round_slow(self.got[-1])
            self.round_start(self.got[-1])
        self.say("")

    # Rows.

    def ratio(self, what, a, b, asked=None, note=""):
        """One row: a / b in each round; none where one of them is not here."""
        values = [g[a] / g[b] for g in self.got if a in g and b in g]
        self.table.add(what, values, "x", asked, note)

    def value(self, what, key, unit, asked=None, note=""):
        self.table.add(what, [g[key] for g in self.got if key in g], unit, asked, note)

    def rows_offline(self):
        t, best = self.table, self.levels[0]
        no_rg = "" if self.has_rg else "not installed"
        t.section = "Offline, one thread"
        for level, least in (("vbmi", 0.7), ("avx2", 0.45)):
            self.ratio(f"speed over mmap and touch, {level}", level, f"touch_{level}",
                       (">=", least), "" if level in self.levels else "not here")
        self.ratio("speed over wc -l", best, "wc")
        self.ratio("speed over ripgrep", best, "rg", (">=", 8), no_rg or self.notes["rg"])
        self.ratio("speed over ripgrep -F, plain words", best, "rg_words", None, no_rg)
        self.ratio("speed over grep -E", best, "grep", (">=", 15), self.notes["grep"])
        self.ratio("speed over grep -F, plain words", best, "grep_words")
        self.ratio("speed over Hyperscan", best, "hs", None,
                   self.notes["hs"] if self.has_hs else "not built")
        self.ratio("time with 250 site rules over none", best, "site250")
        self.ratio("time with 1000 site rules over 250", "site250", "site1000",
                   ("<=", 1.1))
        t.add("verdict on a healthy log", self.healthy, "", ("==", "no_error"))
        t.section = "Offline, two threads"
        self.ratio("speed over one thread, clock", "one_s", "two_s", (">=", 1.7),
                   "" if self.two else "one processor only")
        self.ratio("processor time over one thread", best, "two")
        t.section = f"Error text, {self.dense / MB:g} MB"
        for log, how in (("mixed", "all kinds in turn"),
                         ("repeated", "each said 64 times")):
            self.ratio(f"speed over ripgrep, {how}", log, f"rg_{log}", (">=", 1), no_rg)
        t.section = "Memory and files"
        self.value("resident, one thread", "rss_mb", "MB", ("<=", 64))
        self.value("resident, two threads", "two_rss_mb", "MB", ("<=", 64))
        self.ratio(f"speed of {self.files} files over one", "ranks", best, None,
                   "1024 descriptors")

    def rows_start(self):
        t = self.table
        t.section = "Start, whole process, clock"
        self.value("/bin/true", "true_ms", "ms")
        self.value("diagnose, empty log", "empty_ms", "ms")
        self.value("diagnose, 1 MB", "1m_ms", "ms", ("<=", 5))
        for count in (250, 1000):
            self.value(f"diagnose, 1 MB, {count} site rules", f"1m_{count}_ms", "ms")
        t.section = "Start, whole process, processor time"
        self.value("/bin/true", "true_cpu_ms", "ms")
        self.value("diagnose, empty log", "empty_cpu_ms", "ms")
        self.value("diagnose, 1 MB", "1m_cpu_ms", "ms")
        for count, asked in ((250, None), (1000, ("<=", 20))):
            self.value(f"{count} new site rules add", f"new_{count}_cpu_ms", "ms", asked)
            self.value(f"{count} known ones add", f"known_{count}_cpu_ms", "ms")

    def rows_speed(self):
        t = self.table
        t.section = "Speed, a processor second"
        names = {f"touch_{self.levels[0]}": "mmap and touch", "wc": "wc -l",
                 "rg": "ripgrep", "rg_words": "ripgrep -F", "grep": "grep -E",
                 "grep_words": "grep -F", "hs": "Hyperscan", "rg_mixed": "ripgrep, error text in turn",
                 "rg_repeated": "ripgrep, error text 64 times",
                 "mixed": "diagnose, error text in turn",
                 "repeated": "diagnose, error text 64 times"}
        names.update({level: f"diagnose, {level}" for level in self.levels})
        for key, what in names.items():
            values = [g[key] / MB for g in self.got if key in g]
            if values:
                t.add(what, values, "MB")

    def rows_scan(self):
        """Without lines and rules: the literals alone."""
        t = self.table
        t.section = "Scanner alone, speed over mmap and touch"
        kinds = dict.fromkeys((r["rules"], r["level"], r["threads"]) for r in self.scans)
        for kind in kinds:
            rows = [r for r in self.scans
                    if (r["rules"], r["level"], r["threads"]) == kind]
            clock = "wall_s" if kind[2] > 1 else "cpu_s"
            speed = sum(r["bytes"] for r in rows) / sum(r[clock] for r in rows)
            t.add(f"{kind[0]} rules, {kind[1]}, " +
                  ("one thread" if kind[2] == 1 else "two, clock"),
                  [r["touch_" + clock] / r[clock] for r in rows], "x", None,
                  f"{speed / 1e9:.2f} GB/s, {1e6 * rows[0]['hits'] / rows[0]['bytes']:.0f}"
                  " literals a MB")

    def diagnoses(self):
        self.prepare()
        self.measure()
        self.rows_offline()
        self.rows_start()
        self.rows_speed()
        self.rows_scan()
        # What follows needs the room.
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)

    def checkpoints(self):
        part = bench_checkpoint.Checkpoints(self, available_mb())
        part.measure()
        part.rows()


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def available_mb():
    with open("/proc/meminfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024 // MB
    return 1 << 30


def check_room(size, folder):
    """Everything must fit on the disk, and into the page cache.  A job that saves needs
    more, which is looked for when its turn comes."""
    need = size * 21 // 10 + 20
    for what, have in (("on disk in " + folder, shutil.disk_usage(folder).free // MB),
                       ("of memory", available_mb())):
        if have < need:
            sys.exit(f"bench: {need} MB {what} needed, {have} MB are free: "
                     f"set TMPDIR or give a smaller --size")


def main():
    p = argparse.ArgumentParser(description="measure what a diagnosis and a checkpoint cost")
    p.add_argument("--size", type=int, metavar="MB", help="size of the log, and of what is saved (1000)")
    p.add_argument("--rounds", type=int, metavar="N", help="of measuring (5)")
    p.add_argument("--only", choices=("diagnoses", "checkpoints"), help="a part of it")
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument("--smoke", action="store_true",
                   help="20 MB, 1 round: whether it works; no number is judged")
    args = p.parse_args()
    args.size = args.size or (20 if args.smoke else 1000)
    args.rounds = args.rounds or (1 if args.smoke else 5)
    if args.size < 10 or args.rounds < 1:
        p.error("at least 10 MB and one round")
    for sig in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, lambda number, frame: sys.exit(128 + number))
    check_room(args.size, tempfile.gettempdir())
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as folder:
        bench = Bench(args, folder)
        bench.table.head.update(cpu=processor(), load=load, size_mb=args.size,
                                rounds=args.rounds)
        for part in ("diagnoses", "checkpoints"):
            if args.only in (None, part):
                getattr(bench, part)()
        result = bench.table.result()
    print(json.dumps(result, indent=1) if args.json else "\n".join(lines(result)))


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f"bench: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
