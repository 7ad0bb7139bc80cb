#!/usr/bin/env python3
"""pytorch_gpt.py RESULTS [--quick]: the GPTs of train_gpt in PyTorch, for comparison.

The same shapes, batch, vocabulary (50,304 rows, of which the text, in bytes, uses 256), tied embedding,
clipping and AdamW, with the same attention: scores, softmax and mix in separate steps, so that the same
tensors are kept, or, for `--attention fused` of train_gpt, scaled_dot_product_attention, whose kernels for
this shape keep none of them. In three ways: plain, with activation checkpointing of every layer, and with saved
tensors offloaded to pinned host memory.

fp32 is fp32 throughout: no TF32. bf16 is what `train_gpt --dtype bf16` does: all parameters and
activations of the network are bf16, products are summed in fp32, and AdamW works on fp32 masters and
moments, from which the parameters are rounded after each step. The differences: torch's gradients
of parameters are bf16, and widened for the optimizer, where train_gpt's are fp32 from the start; and
the mean loss is a bf16 number. Autocast is not used: it keeps the residual stream in fp32.

Prints tokens per second and peak bytes, and appends JSON lines to RESULTS. Medians over the steps
after the third. Exit code 77: no torch, or no GPU.
"""
import math
import sys

import pytorch_common as common
import torch
import torch.nn.functional as functional
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

VOCABULARY = 50304
BYTES = 256
LENGTH = 1024
BATCH = 8
MODELS = {
    "gpt-d12": (torch.float32, (12, 768, 12)),
    "gpt-d12-bf16": (torch.bfloat16, (12, 768, 12)),
    "gpt-d12-fused": (torch.float32, (12, 768, 12, True)),
    "gpt-d12-fused-bf16": (torch.bfloat16, (12, 768, 12, True)),
    "gpt-d24": (torch.float32, (24, 1024, 16)),
    "gpt-d24-bf16": (torch.bfloat16, (24, 1024, 16)),
}
QUICK = ("gpt-d12", "gpt-d12-bf16")


class Layer(nn.Module):
    def __init__(self, channels, heads, is_fused):
        super().__init__()
        self.heads = heads
        self.is_fused = is_fused
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
        if self.is_fused:
            # Not the fallback that computes all scores, which PyTorch may choose without a word.
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
                mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(channels // self.heads)
            mixed = scores.masked_fill(mask, float("-inf")).softmax(-1) @ value
        return self.project(mixed.transpose(1, 2).reshape(batch, length, channels))

    def forward(self, x, mask):
        x = x + self.attend(self.norm1(x), mask)
        return x + self.out(functional.gelu(self.hidden(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, channels, heads, is_fused=False):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, channels)
        self.positions = nn.Embedding(LENGTH, channels)
        self.layers = nn.ModuleList(Layer(channels, heads, is_fused) for _ in range(layers))
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


def build(model):
    dtype, shape = MODELS[model]
    network = Gpt(*shape).to(common.DEVICE)
    optimizer = Optimizer(network, dtype)
    tokens = torch.randint(BYTES, (BATCH, LENGTH + 1), device=common.DEVICE)
    targets = tokens[:, 1:].contiguous()

    def forward(is_checkpointed):
        return network(tokens[:, :-1], targets, is_checkpointed)

    return forward, optimizer


if __name__ == "__main__":
    sys.exit(common.run(__doc__, tuple(MODELS), QUICK, build, "tokens", BATCH * LENGTH))
