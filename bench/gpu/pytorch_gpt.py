#!/usr/bin/env python3
"""pytorch_gpt.py RESULTS [--quick]: the GPTs of train_gpt in PyTorch, for comparison.

The same shapes, batch, vocabulary (50,304 rows, of which the tokens, bytes, are 256), tied embedding,
clipping and AdamW, with the same attention (scores, softmax, mix: no fused kernel, so that the same
tensors are kept), three ways: plain, with activation checkpointing of every layer, and with saved
tensors offloaded to pinned host memory.

fp32 is fp32 throughout: no TF32. bf16 is what `train_gpt --dtype bf16` does: all parameters and
activations of the network are bf16, products are summed in fp32, and AdamW works on fp32 masters and
moments, from which the parameters are rounded after each step. It differs in this: torch's gradients
of parameters are bf16, and widened for the optimizer, where train_gpt's are fp32 from the start; and
the mean loss is a bf16 number. Autocast is not used: it keeps the residual stream in fp32.

Prints tokens a second and peak bytes, and appends JSON lines to RESULTS. Medians over the steps
after the third. Exit code 77: no torch, or no GPU.
"""
import json
import math
import statistics
import sys

try:
    import torch
    import torch.nn.functional as functional
    from torch import nn
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(77)

VOCABULARY = 50304
BYTES = 256
LENGTH = 1024
BATCH = 8
MODELS = {
    "gpt-d12": (torch.float32, (12, 768, 12)),
    "gpt-d12-bf16": (torch.bfloat16, (12, 768, 12)),
    "gpt-d24": (torch.float32, (24, 1024, 16)),
    "gpt-d24-bf16": (torch.bfloat16, (24, 1024, 16)),
}
QUICK = ("gpt-d12", "gpt-d12-bf16")
WAYS = ("plain", "checkpoint", "offload")


class Layer(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.project = nn.Linear(channels, channels)
        self.norm2 = nn.LayerNorm(channels)
        self.hidden = nn.Linear(channels, 4 * channels)
        self.out = nn.Linear(4 * channels, channels)

    def attend(self, x, mask):
        batch, length, channels = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, channels // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(channels // self.heads)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        return self.project((weights @ value).transpose(1, 2).reshape(batch, length, channels))

    def forward(self, x, mask):
        x = x + self.attend(self.norm1(x), mask)
        return x + self.out(functional.gelu(self.hidden(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, channels, heads):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, channels)
        self.positions = nn.Embedding(LENGTH, channels)
        self.layers = nn.ModuleList(Layer(channels, heads) for _ in range(layers))
        self.last = nn.LayerNorm(channels)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens, targets, is_checkpointed):
        length = tokens.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        x = self.tokens(tokens) + self.positions.weight[:length]
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False) if is_checkpointed else layer(x, mask)
        logits = self.last(x) @ self.tokens.weight.t()
        return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


class Optimizer:
    """AdamW over the parameters, or over their fp32 masters if they are bf16."""

    def __init__(self, network, dtype):
        self.parameters = list(network.parameters())
        self.masters = self.parameters
        if dtype == torch.bfloat16:
            self.masters = [parameter.detach().clone() for parameter in self.parameters]
            network.to(dtype)
        self.adamw = torch.optim.AdamW(self.masters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)

    def clear(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        has_masters = self.masters is not self.parameters
        if has_masters:
            for master, parameter in zip(self.masters, self.parameters):
                master.grad = parameter.grad.float()
                parameter.grad = None
        nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.adamw.step()
        if has_masters:
            torch._foreach_copy_(self.parameters, self.masters)
            for master in self.masters:
                master.grad = None


def measure(model, way, steps):
    """Milliseconds of each step, and the peak bytes over all."""
    dtype, shape = MODELS[model]
    torch.manual_seed(1)
    network = Gpt(*shape).cuda()
    optimizer = Optimizer(network, dtype)
    tokens = torch.randint(BYTES, (BATCH, LENGTH + 1), device="cuda")
    times = []
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimizer.clear()
        if way == "offload":
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                loss = network(tokens[:, :-1], tokens[:, 1:].contiguous(), False)
        else:
            loss = network(tokens[:, :-1], tokens[:, 1:].contiguous(), way == "checkpoint")
        loss.backward()
        optimizer.step()
        loss.item()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times, torch.cuda.max_memory_allocated()


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU", file=sys.stderr)
        return 77
    is_quick = "--quick" in sys.argv[2:]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    with open(sys.argv[1], "a", encoding="utf-8") as results:
        for model in QUICK if is_quick else MODELS:
            for way in WAYS:
                times, peak = measure(model, way, 7 if is_quick else 10)
                torch.cuda.empty_cache()
                ms = statistics.median(times[3:])
                rate = BATCH * LENGTH / ms * 1e3
                print(f"{model:12} torch {way:10} {rate:9.0f} tokens/s  peak {peak / 2**20:8.1f} MiB"
                      f"  {ms:9.2f} ms")
                results.write(json.dumps({
                    "bench": "pytorch", "model": model, "way": way, "torch": torch.__version__,
                    "peak_bytes": peak, "iteration_ns": round(ms * 1e6), "tokens_per_s": round(rate),
                }) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
