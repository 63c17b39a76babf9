#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench_save.py make DIR BYTES COUNT | save PLAN: the part that needs PyTorch.

make writes big.pt of so many bytes, so many small checkpoints, and one that is as many
small files, as ranks write it.  save is a training job: it holds a state in
the memory of the host, changes it in each step, and stops training for as long as a
save takes.  It saves in four ways by turns, so that each is compared with the others of
the same time:

    direct    to a store that takes PLAN["rate"] bytes a second
    tmpfs     to memory alone, which outlives nothing
    staged    the same, to a folder from which `holdfast checkpoint stage' copies
    snapshot  through libholdfast-checkpoint

PLAN is JSON, see bench_checkpoint.py.  Emits JSON: the stalls in seconds on the clock and
of processor time, and the times until the checkpoint was durable, as lists with the
first save in front.
"""
import json
import os
import shutil
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../examples"))
import snapshot  # pylint: disable=wrong-import-position

TENSORS = 16
SYNC = 32 << 20                 # written to the store at once
PATIENCE_S = 600


def make_state(size):
    count = max(size // TENSORS // 4, 1)
    return {f"layer{i}": torch.arange(i, i + count, dtype=torch.float32).mul_(1e-3)
            for i in range(TENSORS)}


class SlowStore:
    """A file of a network file system that takes so many bytes a second and has all of
    them when it is closed.  No such mount is needed: torch.save() writes to any object
    like this one.  What the job spends between writes counts as sent meanwhile."""

    def __init__(self, path, rate):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.rate = rate
        self.sent = self.synced = 0
        self.start = time.monotonic()

    def write(self, data):
        data = memoryview(data).cast("B")
        for at in range(0, len(data), 1 << 20):
            piece = data[at:at + (1 << 20)]
            while piece:
                n = os.write(self.fd, piece)
                piece = piece[n:]
                self.sent += n
            if self.sent - self.synced >= SYNC:
                self.sync()
            time.sleep(max(0, self.start + self.sent / self.rate - time.monotonic()))
        return len(data)

    def sync(self):
        os.fdatasync(self.fd)
        self.synced = self.sent

    def flush(self):
        pass

    def close(self):
        self.sync()
        os.close(self.fd)


class Job:
    def __init__(self, plan):
        self.plan = plan
        self.state = make_state(plan["bytes"])
        self.factor = torch.eye(64)
        self.step = 0
        self.stalls = {}
        self.processor = {}
        self.durable = {}
        self.snapshots = snapshot.Snapshots(plan["socket"], plan["library"])
        self.snapshots.reserve(plan["bytes"])

    def train(self, seconds):
        """A step: the state changes, the processor has something to do."""
        end = time.monotonic() + seconds
        self.step += 1
        for tensor in self.state.values():
            tensor.mul_(1.0001)
        while time.monotonic() < end:
            self.factor = self.factor @ self.factor

    def path(self, folder):
        return os.path.join(self.plan[folder], f"step{self.step:08d}.pt")

    def save_direct(self):
        store = SlowStore(self.path("direct"), self.plan["rate"])
        torch.save(self.state, store)
        store.close()

    def save_tmpfs(self):
        torch.save(self.state, self.path("tmpfs"))

    def save_staged(self):
        torch.save(self.state, self.path("from"))

    def save_snapshot(self):
        self.snapshots.save(self.step, self.state)

    def save(self, how, to):
        spent = time.process_time()
        start = time.monotonic()
        getattr(self, f"save_{how}")()
        self.stalls.setdefault(to, []).append(time.monotonic() - start)
        self.processor.setdefault(to, []).append(time.process_time() - spent)
        return start

    def wait(self, how):
        """Until the last save is durable."""
        if how == "snapshot":
            self.snapshots.wait()
        end = time.monotonic() + PATIENCE_S
        while how == "staged" and not os.path.exists(self.path("to")):
            if time.monotonic() > end:
                sys.exit(f"bench: {self.path('to')} did not appear")
            time.sleep(0.005)

    def clear(self, folder, keep):
        """Leaves the newest ones, and what would be copied again."""
        staged = os.listdir(self.plan["from"])
        names = sorted(n for n in os.listdir(self.plan[folder]) if n.startswith("step"))
        for name in names[:len(names) - keep]:
            if name not in staged:
                os.unlink(os.path.join(self.plan[folder], name))

    def run_apart(self):
        """Each save is durable before the next one."""
        for how in ("direct", "tmpfs", "staged", "snapshot"):
            self.train(self.plan["step_s"])
            start = self.save(how, how)
            if how != "tmpfs":
                self.wait(how)
                self.durable.setdefault(how, []).append(time.monotonic() - start)
            # Staging has one save in memory while the next one is made.
            self.clear("direct", 0)
            self.clear("tmpfs", 1)
            self.clear("to", 1)

    def run_behind(self, how):
        """The ones before are still written while the next one is saved.  On tmpfs as
        many stay: memory that is new costs more than what was just freed."""
        for _ in range(self.plan["saves"]):
            self.train(2 * self.plan["step_s"])
            self.save(how, how + "_behind")
        self.wait(how)
        self.clear("to", 1)
        self.clear("tmpfs", 0)
        self.train(5 * self.plan["step_s"])

    def run(self):
        for _ in range(self.plan["saves"]):
            self.run_apart()
        for how in ("tmpfs", "staged", "snapshot"):
            self.run_behind(how)
        self.snapshots.close()
        return {"stall": self.stalls, "processor": self.processor,
                "durable": self.durable}


def make(folder, size, count):
    ranks = os.path.join(folder, "ranks/step00000007")
    steps = os.path.join(folder, "steps")
    os.makedirs(ranks)
    os.makedirs(steps)
    torch.save(make_state(size), os.path.join(folder, "big.pt"))
    first = os.path.join(steps, "step00000000.pt")
    torch.save({"weight": torch.ones(64, 64), "bias": torch.ones(64), "step": 7}, first)
    for i in range(count):
        if i > 0:
            shutil.copy(first, os.path.join(steps, f"step{i:08d}.pt"))
        shutil.copy(first, os.path.join(ranks, f"rank-{i:05d}-of-{count:05d}.pt"))


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        print(json.dumps(Job(json.loads(sys.argv[2])).run()))


if __name__ == "__main__":
    main()
