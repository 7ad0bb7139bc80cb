#!/usr/bin/env python3
"""pytorch_cnn.py RESULTS [--quick]: the network of train_cnn in PyTorch, for comparison.

ResNet-50 (1.5) on random images of 224 x 224, the same in every step: the same layers, batch, initial weights and
SGD with momentum, in three ways: plain, with activation checkpointing of every block, and with saved
tensors offloaded to pinned host memory. Convolutions are cuDNN's, with the algorithms that torch
selects without trying them; relus and sums are in place, as is usual there. With checkpointing the
running statistics of a block are updated twice per step.

fp32 is fp32 throughout: no TF32. bf16 is what `train_cnn --dtype bf16` does: images, activations and
working weights are bf16, and SGD works on fp32 masters and velocities, from which the weights are rounded
after each step. The differences: torch's gradients of bf16 weights are bf16, and
widened for the optimizer, where train_cnn's are fp32 from the start; scale and shift of the norms stay
fp32, where train_cnn's are bf16 with masters; products may use tensor cores, where train_cnn's are in
fp32; and the mean loss is a bf16 number.

Prints images per second and peak bytes, and appends JSON lines to RESULTS. Medians over the steps after
the third. Exit code 77: no torch, or no GPU.
"""
import sys

import pytorch_common as common
import torch
import torch.nn.functional as functional
from torch import nn
from torch.utils.checkpoint import checkpoint

BATCH = 64
SIDE = 224
WIDTH = 64
CLASSES = 1000
STAGES = (3, 4, 6, 3)
MODELS = {"cnn": torch.float32, "cnn-bf16": torch.bfloat16}
QUICK = ("cnn",)


class Unit(nn.Module):
    """A convolution with its norm."""

    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        nn.init.kaiming_normal_(self.conv.weight)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.reduce = Unit(inputs, width, 1)
        self.middle = Unit(width, width, 3, stride)
        self.expand = Unit(width, 4 * width, 1)
        self.project = None
        if inputs != 4 * width or stride != 1:
            self.project = Unit(inputs, 4 * width, 1, stride)

    def forward(self, x):
        branch = functional.relu_(self.reduce(x))
        branch = functional.relu_(self.middle(branch))
        branch = self.expand(branch)
        branch += x if self.project is None else self.project(x)
        return functional.relu_(branch)


class Cnn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = Unit(3, width, 7, 2)
        self.blocks = nn.ModuleList()
        inputs = width
        for stage, count in enumerate(STAGES):
            for i in range(count):
                self.blocks.append(Block(inputs, width << stage, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * (width << stage)
        self.dense = nn.Linear(inputs, CLASSES)
        nn.init.normal_(self.dense.weight, std=inputs ** -0.5)
        nn.init.zeros_(self.dense.bias)

    def forward(self, images, labels, is_checkpointed):
        x = functional.max_pool2d(functional.relu_(self.stem(images)), 3, 2, 1)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if is_checkpointed else block(x)
        return functional.cross_entropy(self.dense(x.mean((2, 3))), labels)


class Optimizer:
    """SGD over the parameters; of those that are bf16, over their fp32 masters."""

    def __init__(self, network, dtype):
        self.parameters = list(network.parameters())
        starts = [parameter.detach().clone() for parameter in self.parameters]
        for module in network.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                module.to(dtype)
        pairs = list(zip(self.parameters, starts))
        self.working = [parameter for parameter, _ in pairs if parameter.dtype == torch.bfloat16]
        self.masters = [start for parameter, start in pairs if parameter.dtype == torch.bfloat16]
        others = [parameter for parameter, _ in pairs if parameter.dtype == torch.float32]
        self.sgd = torch.optim.SGD(
            self.masters + others, lr=0.01, momentum=0.9, weight_decay=1e-4
        )

    def clear(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        for master, parameter in zip(self.masters, self.working):
            master.grad = parameter.grad.float()
            parameter.grad = None
        self.sgd.step()
        if self.masters:
            torch._foreach_copy_(self.working, self.masters)
            for master in self.masters:
                master.grad = None


def build(model):
    dtype = MODELS[model]
    network = Cnn(WIDTH).to(common.DEVICE)
    optimizer = Optimizer(network, dtype)
    images = (torch.rand(BATCH, 3, SIDE, SIDE, device=common.DEVICE) - 0.5).to(dtype)
    labels = torch.randint(CLASSES, (BATCH,), device=common.DEVICE)

    def forward(is_checkpointed):
        return network(images, labels, is_checkpointed)

    return forward, optimizer


if __name__ == "__main__":
    sys.exit(common.run(__doc__, tuple(MODELS), QUICK, build, "images", BATCH))
