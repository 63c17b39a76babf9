#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Saving without waiting for the storage, from Python: holdfast-checkpoint(3) by ctypes.

Snapshots copies a state (nested dicts with tensors) into memory that it shares with
Holdfast, and returns; Holdfast writes the checkpoint, which restore() reads back:

    holdfast run --nproc-per-node 2 --checkpoint-dir /durable --stage 8G -- \\
        examples/snapshot.py --steps 40

Run so, this file is a small training job; to use it in another one, copy the class
Snapshots and the functions before it.
"""
import argparse
import ctypes
import hashlib
import os
import pickle
import signal

import torch
import torch.distributed as dist

SEPARATOR = "\x1f"  # no key of a state has it
# enum holdfast_checkpoint_dtype; a torch that is too old for one has none of it.
DTYPES = {
    getattr(torch, name): number
    for number, name in enumerate(
        "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 "
        "complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
        "float8_e5m2fnuz float8_e8m0fnu".split(),
        1,
    )
    if hasattr(torch, name)
}


class Place:
    """Stands for a tensor in the skeleton of a state."""

    def __init__(self, key):
        self.key = key


def take_apart(node, path, tensors):
    """The node without its tensors, which go into the dict tensors by their paths."""
    if isinstance(node, torch.Tensor):
        key = SEPARATOR.join(path)
        tensors[key] = node
        return Place(key)
    if isinstance(node, dict):
        return {k: take_apart(v, path + [str(k)], tensors) for k, v in node.items()}
    if type(node) in (list, tuple):
        return type(node)(
            take_apart(v, path + [str(i)], tensors) for i, v in enumerate(node)
        )
    return node


def put_together(node, tensors):
    if isinstance(node, Place):
        found = tensors
        for key in node.key.split(SEPARATOR):
            found = found[key]
        return found
    if isinstance(node, dict):
        return {k: put_together(v, tensors) for k, v in node.items()}
    if type(node) in (list, tuple):
        return type(node)(put_together(v, tensors) for v in node)
    return node


def restore(path, rank=0, world=1):
    """The state that Snapshots.save() was given; path is a file, or the folder of
    several ranks."""
    if os.path.isdir(path):
        path = os.path.join(path, f"rank-{rank:05d}-of-{world:05d}.pt")
    saved = torch.load(path, map_location="cpu")
    return put_together(pickle.loads(saved["skeleton"]), saved)


class Snapshots:
    def __init__(self, socket=None, library="libholdfast-checkpoint.so.0"):
        self.library = ctypes.CDLL(os.environ.get("HOLDFAST_CHECKPOINT_LIBRARY", library))
        self.error = ctypes.create_string_buffer(256)
        self.client = ctypes.c_void_p()
        name = socket.encode() if socket is not None else None
        self.call("open", name, ctypes.byref(self.client))

    def call(self, name, *arguments):
        function = getattr(self.library, "holdfast_checkpoint_" + name)
        code = function(*arguments, self.error, ctypes.c_size_t(len(self.error)))
        if code != 0:
            raise OSError(f"{name}: {self.error.value.decode(errors='replace')}")

    def reserve(self, size):
        """Has memory for snapshots of so many bytes made ready in the background."""
        self.call("reserve", self.client, ctypes.c_uint64(size))

    def save(self, step, state, rank=0, world=1):
        """Returns when the state is copied; it may change from then on."""
        tensors = {}
        skeleton = pickle.dumps(take_apart(state, ["tensors"], tensors))
        self.call(
            "begin", self.client, ctypes.c_int64(step), rank, world,
            ctypes.c_char(SEPARATOR.encode()),
        )
        for key, tensor in tensors.items():
            tensor = tensor.detach().contiguous().cpu()
            self.call(
                "snapshot", self.client, key.encode(), DTYPES[tensor.dtype], tensor.dim(),
                (ctypes.c_int64 * tensor.dim())(*tensor.shape),
                ctypes.c_void_p(tensor.data_ptr()),
                ctypes.c_uint64(tensor.numel() * tensor.element_size()),
            )
        self.call(
            "set_bytes", self.client, b"skeleton", skeleton, ctypes.c_uint64(len(skeleton))
        )
        self.call("set_int", self.client, b"step", ctypes.c_int64(step))
        self.call("commit", self.client)

    def wait(self, seconds=-1):
        """Waits until the last snapshot is durable."""
        self.call("wait", self.client, ctypes.c_int64(-1 if seconds < 0 else int(1e3 * seconds)))

    def close(self):
        self.library.holdfast_checkpoint_close(self.client)


def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def train(options, rank, world):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(options.width, options.width), torch.nn.Linear(options.width, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    snapshots = Snapshots()
    step = 0
    if "HOLDFAST_RESUME_FROM" in os.environ:
        state = restore(os.environ["HOLDFAST_RESUME_FROM"], rank, world)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        print(f"rank {rank} resumes at step {step}", flush=True)
    while step < options.steps:
        if step + 1 == options.die and rank == world - 1 and os.environ.get("HOLDFAST_ATTEMPT", "1") == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        generator = torch.Generator().manual_seed(step * world + rank)
        loss = model(torch.randn(8, options.width, generator=generator)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average(model)
        optimizer.step()
        step += 1
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        if step % options.save_every == 0:
            state = {
                "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step
            }
            try:
                snapshots.save(step, state, rank, world)
            except OSError as e:  # the next one may succeed; or torch.save() here
                print(f"rank {rank}: step {step} is not saved: {e}", flush=True)
    snapshots.wait()
    snapshots.close()
    dist.destroy_process_group()
    weights = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    print(f"rank {rank} done at step {step} weights {weights.hexdigest()}", flush=True)


def main():
    p = argparse.ArgumentParser(description="train a little, with snapshots")
    p.add_argument("--steps", type=int, default=40, help="steps in all (40)")
    p.add_argument("--save-every", type=int, default=10, help="steps between snapshots (10)")
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--die", type=int, help="the last rank is killed before this step, once")
    train(p.parse_args(), int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


if __name__ == "__main__":
    main()
