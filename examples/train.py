#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small GPT trained by data parallelism on gloo: a real trainer to try Holdfast on.

It knows Holdfast only by the optional environment variables of holdfast(7):
HOLDFAST_RESUME_FROM, HOLDFAST_RESUME_STEP, HOLDFAST_CHECKPOINT_DIR,
HOLDFAST_SKIP_FROM and HOLDFAST_SKIP_TO.  Under plain torchrun it resumes from
its own latest.json.

Steps count from 1.  The batch of a rank is a pure function of (data index,
rank), so that two runs that see the same indexes end with the same weights;
with --exact (one flat all-reduce in place of DistributedDataParallel, whose
buckets are rebuilt after a restart and change the order of summation) this
holds bit for bit across restarts.

Faults are injected by HOLDFAST_FAULT=KIND:RANK:STEP[:ATTEMPT][,...]: when that
rank is about to do that step.  Attempts count from 1, as in Holdfast
(HOLDFAST_ATTEMPT, or TORCHELASTIC_RESTART_COUNT + 1); the default is the first
attempt only, `*' is every attempt.  For `nan' STEP is the data index, so that a
poisoned batch is met again unless it is skipped.
"""
import argparse
import ctypes
import datetime
import hashlib
import io
import json
import math
import os
import signal
import sys
import time
import zipfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

VOCABULARY = 256
CONTEXT = 32
BATCH = 4


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, hidden):
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = (
            part.view(batch, length, self.heads, size).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, 2)
        )
        score = (q @ k.transpose(-2, -1)) / math.sqrt(size)
        score = score.masked_fill(hidden[:length, :length], -math.inf)
        mixed = (score.softmax(-1) @ v).transpose(1, 2)
        x = x + self.project(mixed.reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        # Not a buffer: gloo of torch 1.13 cannot broadcast booleans.
        self.hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.hidden)
        return self.head(self.norm(x))


def checkpoint_path(directory, step):
    return os.path.join(directory, f"step{step:08d}.pt")


def write_atomic(path, data):
    """Replaces path as a whole: temporary file, fsync, rename, fsync of the folder."""
    with open(path + ".tmp", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def newest_checkpoint(directory):
    names = sorted(
        n for n in os.listdir(directory) if n.startswith("step") and n.endswith(".pt")
    )
    return os.path.join(directory, names[-1])


class Trainer:
    def __init__(self, options):
        self.options = options
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.net = GPT(options.width, options.layers, options.heads)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), options.rate)
        # A group of its own: ranks may be slow to start, but once they are in step
        # options.timeout is how long one of them may be silent.
        self.group = dist.new_group(timeout=datetime.timedelta(seconds=options.timeout))
        self.model = self.net
        if not options.exact:
            self.model = DistributedDataParallel(self.net, process_group=self.group)
        self.step = 0  # completed steps
        self.data = 0  # data indexes used up or skipped
        self.skip = None
        if "HOLDFAST_SKIP_FROM" in os.environ:
            first = int(os.environ["HOLDFAST_SKIP_FROM"])
            self.skip = (first, int(os.environ.get("HOLDFAST_SKIP_TO", first)))

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def find_checkpoint(self):
        """The checkpoint to resume from, or None: Holdfast's choice, then
        --resume, then latest.json unless Holdfast looked and found none."""
        chosen = os.environ.get("HOLDFAST_RESUME_FROM")
        if chosen:
            return chosen
        if self.options.resume:
            return self.options.resume
        if "HOLDFAST_CHECKPOINT_DIR" in os.environ:
            return None
        try:
            with open(
                os.path.join(self.options.checkpoint_dir, "latest.json"),
                encoding="utf-8",
            ) as f:
                return os.path.join(self.options.checkpoint_dir, json.load(f)["file"])
        except FileNotFoundError:
            return None

    def resume(self):
        path = self.find_checkpoint()
        if path is None:
            self.say(f"starting from step 0, {self.world} ranks, {self.count()} parameters")
            return
        state = torch.load(path, map_location="cpu")
        wanted = os.environ.get("HOLDFAST_RESUME_STEP")
        if path == os.environ.get("HOLDFAST_RESUME_FROM") and wanted is not None:
            if int(wanted) != state["step"]:
                raise ValueError(
                    f"{path} holds step {state['step']}, HOLDFAST_RESUME_STEP is {wanted}"
                )
        self.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self.data = state["data"]
        self.say(
            f"resuming from step {self.step} of {path}, {self.world} ranks, "
            f"{self.count()} parameters"
        )

    def count(self):
        return sum(p.numel() for p in self.net.parameters())

    def state_bytes(self):
        memory = io.BytesIO()
        torch.save(
            {
                "model": self.net.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
                "data": self.data,
            },
            memory,
        )
        return memory.getvalue()

    def save(self):
        if self.rank == 0:
            path = checkpoint_path(self.options.checkpoint_dir, self.step)
            write_atomic(path, self.state_bytes())
            latest = {"file": os.path.basename(path), "step": self.step}
            write_atomic(
                os.path.join(self.options.checkpoint_dir, "latest.json"),
                json.dumps(latest).encode() + b"\n",
            )
        dist.barrier(self.group)

    def average_gradients(self):
        flat = torch.cat([p.grad.reshape(-1) for p in self.net.parameters()])
        dist.all_reduce(flat, group=self.group)
        flat /= self.world
        offset = 0
        for p in self.net.parameters():
            p.grad.copy_(flat[offset : offset + p.numel()].view_as(p))
            offset += p.numel()

    def batch(self):
        """Data index 1, 2, ... without those behind HOLDFAST_SKIP_FROM up to
        HOLDFAST_SKIP_TO."""
        self.data += 1
        if self.skip is not None and self.skip[0] < self.data <= self.skip[1]:
            self.say(f"skipping data {self.data} to {self.skip[1]}")
            self.data = self.skip[1] + 1
        generator = torch.Generator().manual_seed(self.data * 100003 + self.rank)
        # Successive tokens differ by a small random stride: there is something to learn.
        start = torch.randint(0, VOCABULARY, (BATCH, 1), generator=generator)
        stride = torch.randint(0, 3, (BATCH, CONTEXT + 1), generator=generator)
        return (start + stride.cumsum(1)) % VOCABULARY

    def train_step(self):
        began = time.monotonic()
        tokens = self.batch()
        logits = self.model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        if fault_is_due("nan", self.rank, self.data):
            loss = loss * math.nan
        self.optimizer.zero_grad()
        loss.backward()
        if self.options.exact:
            self.average_gradients()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=self.group)
        mean = mean.item() / self.world
        self.step += 1
        left = self.options.step_time - (time.monotonic() - began)
        if left > 0:
            time.sleep(left)
        self.say(
            f"step {self.step} loss {mean:.6f} grad_norm {norm.item():.4f} "
            f"{1e3 * (time.monotonic() - began):.1f} ms"
        )
        if math.isnan(mean) and not self.options.allow_nan:
            raise FloatingPointError(
                f"loss is nan at step {self.step}, stopping training"
            )

    def train(self):
        while self.step < self.options.steps:
            inject_faults(self)
            self.train_step()
            if self.step % self.options.save_every == 0:
                self.save()
        weights = hashlib.sha256()
        for tensor in self.net.state_dict().values():
            weights.update(tensor.numpy().tobytes())
        self.say(f"done at step {self.step} weights sha256 {weights.hexdigest()}")


def attempt():
    if "HOLDFAST_ATTEMPT" in os.environ:
        return int(os.environ["HOLDFAST_ATTEMPT"])
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) + 1


def faults():
    """(kind, rank, step) of the faults of this attempt."""
    for text in filter(None, os.environ.get("HOLDFAST_FAULT", "").split(",")):
        kind, rank, step, which = (text.split(":") + ["1"])[:4]
        if kind != "nan" and kind not in FAULTS:
            sys.exit(f"HOLDFAST_FAULT: unknown kind {kind!r}, one of: nan {' '.join(FAULTS)}")
        if which == "*" or int(which) == attempt():
            yield kind, int(rank), int(step)


def fault_is_due(kind, rank, step):
    return (kind, rank, step) in faults()


def inject_faults(trainer):
    for kind, rank, step in faults():
        if kind != "nan" and rank == trainer.rank and step == trainer.step + 1:
            # Every other rank is past the last barrier and inside this step.
            print(f"rank {rank} pid {os.getpid()}: fault {kind} before step {step}", flush=True)
            FAULTS[kind](trainer)


def fault_exception(_trainer):
    raise IndexError("index out of range in self (injected)")


def fault_exit(_trainer):
    sys.exit(7)


def fault_kill(_trainer):
    os.kill(os.getpid(), signal.SIGKILL)


def fault_segv(_trainer):
    ctypes.string_at(0)


def fault_abort(_trainer):
    os.abort()


def fault_stop(_trainer):
    os.kill(os.getpid(), signal.SIGSTOP)


def fault_hang(_trainer):
    while True:
        time.sleep(3600)


def fault_ignore_term(trainer):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fault_hang(trainer)


def fault_oom(_trainer):
    kind = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)
    raise kind(
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total "
        "capacity; 76.31 GiB already allocated; 1.12 GiB free; 77.20 GiB reserved in "
        "total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation.  See documentation for Memory "
        "Management and PYTORCH_CUDA_ALLOC_CONF"
    )


def fault_torn(trainer):
    """A save that was not atomic, cut short by the death of its process."""
    data = trainer.state_bytes()
    path = checkpoint_path(trainer.options.checkpoint_dir, trainer.step)
    with open(path, "wb") as f:
        f.write(data[: len(data) // 2])
    with open(
        os.path.join(trainer.options.checkpoint_dir, "latest.json"), "w", encoding="utf-8"
    ) as f:
        json.dump({"file": os.path.basename(path), "step": trainer.step}, f)
    fault_kill(trainer)


def fault_flip(trainer):
    """One bit of a tensor in the newest checkpoint turns over; then the rank is killed.
    torch.load() takes such a file without complaint."""
    path = newest_checkpoint(trainer.options.checkpoint_dir)
    with zipfile.ZipFile(path) as archive:
        record_ = max(
            (i for i in archive.infolist() if "/data/" in i.filename),
            key=lambda i: i.file_size,
        )
    with open(path, "r+b") as f:
        # Local header of APPNOTE.TXT 4.3.7: 30 bytes, then name and extra field.
        f.seek(record_.header_offset + 26)
        lengths = f.read(4)
        name, extra = (int.from_bytes(lengths[i : i + 2], "little") for i in (0, 2))
        # The third byte of a little-endian float32: the top of its fraction.
        f.seek(record_.header_offset + 30 + name + extra + 4 * 100 + 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 0x40]))
        f.flush()
        os.fsync(f.fileno())
    print(f"turned over one bit of {path}", flush=True)
    fault_kill(trainer)


def fault_daemon(_trainer):
    """A descendant that nobody waits for: forked twice, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            fault_hang(None)
        os._exit(0)
    os.wait()
    raise RuntimeError("left a daemon behind (injected)")


FAULTS = {
    "exception": fault_exception,
    "exit": fault_exit,
    "kill": fault_kill,
    "segv": fault_segv,
    "abort": fault_abort,
    "stop": fault_stop,
    "hang": fault_hang,
    "ignore-term": fault_ignore_term,
    "oom": fault_oom,
    "torn": fault_torn,
    "flip": fault_flip,
    "daemon": fault_daemon,
}


def parse_options():
    p = argparse.ArgumentParser(description="train a small GPT on gloo")
    p.add_argument("--steps", type=int, default=20, help="steps in all (20)")
    p.add_argument("--save-every", type=int, default=5, help="steps between checkpoints (5)")
    p.add_argument(
        "--checkpoint-dir",
        default=os.environ.get("HOLDFAST_CHECKPOINT_DIR", "checkpoints"),
        help="where stepNNNNNNNN.pt and latest.json are (HOLDFAST_CHECKPOINT_DIR)",
    )
    p.add_argument("--resume", help="checkpoint to start from, in place of latest.json")
    p.add_argument("--timeout", type=float, default=30, help="of collectives, seconds (30)")
    p.add_argument("--step-time", type=float, default=0, help="seconds a step takes at least")
    p.add_argument("--exact", action="store_true", help="restarts do not change a bit")
    p.add_argument("--allow-nan", action="store_true", help="train on when the loss is nan")
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--rate", type=float, default=1e-3)
    return p.parse_args()


@record
def main():
    options = parse_options()
    for _ in faults():  # a wrong HOLDFAST_FAULT ends here, not at its step
        pass
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.makedirs(options.checkpoint_dir, exist_ok=True)
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=5))
    trainer = Trainer(options)
    trainer.resume()
    trainer.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
