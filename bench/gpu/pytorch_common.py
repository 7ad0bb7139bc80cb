"""What pytorch_gpt.py and pytorch_cnn.py share: the ways to train, measuring, and rows.

A model is trained in three ways: plain, with activation checkpointing of every layer or block, and with
saved tensors offloaded to pinned host memory. fp32 is fp32 throughout: no TF32.
"""
import contextlib
import json
import statistics
import sys

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(77)

DEVICE = "cuda"
WAYS = ("plain", "checkpoint", "offload")


def measure(forward, optimizer, way, steps):
    """Milliseconds of each step, and the peak bytes over all steps, including what exists before.

    forward(is_checkpointed) returns the loss; optimizer has clear() and step().
    """
    times = []
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimizer.clear()
        keeping = contextlib.nullcontext()
        if way == "offload":
            keeping = torch.autograd.graph.save_on_cpu(pin_memory=True)
        with keeping:
            loss = forward(way == "checkpoint")
        loss.backward()
        optimizer.step()
        loss.item()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times, torch.cuda.max_memory_allocated()


def run(document, models, quick, build, unit, units):
    """The program: a row for every model and way. A step has so many `units`, called `unit`s.

    models: the names; quick: those of --quick. build(name) gives forward and optimizer.
    """
    if len(sys.argv) < 2:
        print(document, file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU", file=sys.stderr)
        return 77
    is_quick = "--quick" in sys.argv[2:]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    with open(sys.argv[1], "a", encoding="utf-8") as results:
        for model in quick if is_quick else models:
            for way in WAYS:
                torch.manual_seed(1)
                times, peak = measure(*build(model), way, 7 if is_quick else 10)
                torch.cuda.empty_cache()
                ms = statistics.median(times[3:])
                rate = units / ms * 1e3
                print(f"{model:12} torch {way:10} {rate:9.0f} {unit}/s  peak {peak / 2**20:8.1f} MiB"
                      f"  {ms:9.2f} ms", flush=True)
                results.write(json.dumps({
                    "bench": "pytorch", "model": model, "way": way, "torch": torch.__version__,
                    "peak_bytes": peak, "iteration_ns": round(ms * 1e6),
                    f"{unit}_per_s": round(rate),
                }) + "\n")
                results.flush()
    return 0
