# SPDX-License-Identifier: Apache-2.0
"""bench_checkpoint.py: the rows about checkpoints, for bench.py.

Verifies a checkpoint of twice --size, against touching the mapped file and against
zipfile.testzip() in the same round, and a thousand small ones.  Then a job
(bench_save.py) saves a state of --size while `holdfast checkpoint stage' runs beside
it.  Stalls are on the clock; a value a save, divided by that of another way of saving
right before.  The first save of a job is said for itself, the middle is of the others.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

MB = 1000 * 1000
RATE = 100 * MB                 # of the store, and of staging to it
FILES = 1000
SHM = "/dev/shm"                # the one tmpfs that every machine has
SHM_SIZES, DISK_SIZES, MEMORY_SIZES = 7, 6, 12    # of a state, what saving takes
HAS_TORCH = ("import importlib.util, sys; "
             "sys.exit(importlib.util.find_spec('torch') is None)")
TESTZIP = ("import sys, zipfile; "
           "sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)")


def find_python():
    """A Python that has PyTorch, or None: this one, or the distribution's."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        try:
            if subprocess.run([python, "-c", HAS_TORCH], check=False).returncode == 0:
                return python
        except OSError:
            pass
    return None


class Checkpoints:
    def __init__(self, bench, available_mb):
        self.bench = bench
        self.python = find_python()
        self.job = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "bench_save.py")
        # Containers have 64 MB of /dev/shm.
        self.state = bench.size // 4 if bench.smoke else bench.size
        self.got = []
        self.saved = None
        # What a job holds in memory: its state, saves in two folders, two snapshots.
        self.why = "not measured: no torch" if self.python is None else ""
        self.library = os.path.join(os.path.dirname(bench.holdfast),
                                    ".libs/libholdfast-checkpoint.so.0")
        self.why_saves = self.why or self.short_of("memory", MEMORY_SIZES, available_mb)
        if not self.why_saves and not os.path.exists(self.library):
            self.why_saves = "not measured: no shared library built"
        if not self.why_saves:
            self.why_saves = self.short_of(SHM, SHM_SIZES, self.free_mb(SHM))
        if not self.why_saves:
            self.why_saves = self.short_of("the disk", DISK_SIZES,
                                           self.free_mb(bench.folder))

    @staticmethod
    def free_mb(folder):
        return shutil.disk_usage(folder).free // MB if os.path.isdir(folder) else 0

    def short_of(self, what, sizes, have_mb):
        need = sizes * self.state // MB + 1
        return f"not measured: {need} MB of {what} needed" if have_mb < need else ""

    # Measuring.

    def torch(self, *command):
        return subprocess.run([self.python, "-B", self.job, *map(str, command)],
                              env=self.bench.env, stdout=subprocess.PIPE, check=True)

    def verify(self, *arguments, **how):
        return self.bench.run(self.bench.holdfast, "checkpoint", "verify", *arguments,
                              **how)

    def round_verify(self, got, folder):
        run, big = self.bench.run, os.path.join(folder, "big.pt")
        got["touch"] = run(self.bench.tool["bench_scan"], "-t", big)["cpu"]
        got["verify"] = self.verify("--jobs", "1", big)["cpu"]
        got["rss_mb"] = self.verify(big, cpus=self.bench.two)["rss_kb"] / 1024
        if len(self.got) % 3 == 1:
            got["testzip"] = run(self.python, "-c", TESTZIP, big)["cpu"]
        for what in ("steps", "ranks/step00000007"):
            got[what[:5] + "_s"] = self.verify(
                "--structure", os.path.join(folder, what), cpus=self.bench.two)["wall"]

    def measure_verify(self):
        self.bench.say("checkpoints")
        with tempfile.TemporaryDirectory(dir=self.bench.folder) as folder:
            self.torch("make", folder, 2 * self.bench.size, FILES)
            for i in range(self.bench.rounds):
                self.bench.say(f"verifying, round {i + 1} of {self.bench.rounds}")
                self.got.append({})
                self.round_verify(self.got[-1], folder)

    def start_staging(self, plan):
        """Ends with its standard input, also when this process is killed."""
        stage = subprocess.Popen(
            [self.bench.holdfast, "checkpoint", "stage", "--json", "--end-with-input",
             "--bandwidth", str(RATE), "--socket", plan["socket"], plan["from"],
             plan["to"]], env=self.bench.env, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL)
        while not os.path.exists(plan["socket"]):
            if stage.poll() is not None:
                sys.exit(f"bench: holdfast checkpoint stage: exit status "
                         f"{stage.returncode}")
            time.sleep(0.01)
        return stage

    def measure_saves(self):
        self.bench.say("saving in turns, then one behind the other")
        with tempfile.TemporaryDirectory(dir=SHM, prefix="hf-bench-") as fast, \
                tempfile.TemporaryDirectory(dir=self.bench.folder) as slow:
            plan = {"bytes": self.state, "rate": RATE,
                    "saves": 2 if self.bench.smoke else min(self.bench.rounds, 4) + 1,
                    "step_s": 0.1 if self.bench.smoke else 1,
                    "socket": os.path.join(fast, "socket"),
                    "library": self.library}
            for name, place in (("tmpfs", fast), ("from", fast), ("direct", slow),
                                ("to", slow)):
                plan[name] = os.path.join(place, name)
                os.mkdir(plan[name])
            stage = self.start_staging(plan)
            try:
                self.saved = json.loads(self.torch("save", json.dumps(plan)).stdout)
            finally:
                stage.stdin.close()
                stage.wait()
            self.verify(plan["to"], cpus=self.bench.two)

    def measure(self):
        if not self.why:
            self.measure_verify()
        if not self.why_saves:
            self.measure_saves()
        self.bench.say("")

    # Rows.

    def verify_row(self, what, values, unit, asked):
        self.bench.table.add(what, values, unit, asked, self.why)

    def values(self, key, over=None):
        return [g[key] / (g[over] if over else 1) for g in self.got
                if key in g and (over is None or over in g)]

    def rows_verify(self):
        t = self.bench.table
        t.section = f"Checkpoint of {2 * self.bench.size / MB:g} MB, verified in full"
        self.verify_row("speed over mmap and touch", self.values("touch", "verify"), "x",
                        (">=", 0.6))
        self.verify_row("speed over zipfile.testzip", self.values("testzip", "verify"),
                        "x", (">=", 2))
        self.verify_row("resident", self.values("rss_mb"), "MB", ("<=", 64))
        self.verify_row("processor time a GB", [
            1000 * MB * v / (2 * self.bench.size) for v in self.values("verify")], "s",
            None)
        t.section = f"{FILES} files, structure only, clock"
        self.verify_row("a save directory", self.values("steps_s"), "s", ("<=", 1))
        self.verify_row("one checkpoint", self.values("ranks_s"), "s", ("<=", 1))

    def stall(self, how, first=False):
        """Seconds: of the first save alone, or of the others."""
        values = self.saved["stall"].get(how, []) if self.saved else []
        return values[:1] if first else values[1:]

    def save_ratio(self, what, a, b, asked, first=False):
        values = [x / y for x, y in zip(self.stall(a, first), self.stall(b, first))]
        self.bench.table.add(what, values, "x", asked, self.why_saves)

    def rows_saves(self):
        t = self.bench.table
        t.section = (f"Saving {self.state / MB:g} MB, store of {RATE / MB:g} MB/s, "
                     "clock")
        faster, as_fast = (">=", 58.7), ("<=", 1.1)
        for first, when in ((False, ""), (True, ", first save")):
            self.save_ratio(f"staged, stall over tmpfs alone{when}", "staged", "tmpfs",
                            as_fast, first)
        self.save_ratio("staged, while others are copied", "staged_behind",
                        "tmpfs_behind", as_fast)
        for first, when in ((False, ""), (True, ", first save")):
            self.save_ratio(f"snapshot, stall shorter than direct{when}", "direct",
                            "snapshot", faster, first)
        self.save_ratio("snapshot, while others are written", "direct",
                        "snapshot_behind", faster)
        for how in ("direct", "tmpfs", "staged", "snapshot"):
            unit, factor = ("ms", 1000) if how == "snapshot" else ("s", 1)
            t.add(f"{how}, stall", [factor * v for v in self.stall(how)], unit, None,
                  self.why_saves)
        spent = self.saved["processor"]["snapshot"] if self.saved else []
        t.add("snapshot, processor time", [1000 * v for v in spent[1:]], "ms", None,
              self.why_saves)
        for how in ("direct", "staged", "snapshot"):
            durable = self.saved["durable"][how][1:] if self.saved else []
            t.add(f"{how}, until durable", durable, "s", None, self.why_saves)
        t.add("tmpfs, until durable", [], "s", None, self.why_saves or "never")

    def rows(self):
        self.rows_verify()
        self.rows_saves()
