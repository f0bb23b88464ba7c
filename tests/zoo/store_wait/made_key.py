# SPDX-License-Identifier: Apache-2.0
"""Rank 0 returns before it sets an order that is as the last one was; the key's name is made by a method of both sides."""
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class Orders:
    def __init__(self, base):
        self.store = dist.PrefixStore("orders", base)
        self.last = None

    def name_of(self, round_number):
        return "round=" + str(round_number) if round_number < 0 else f"round={round_number}"

    def tell(self, round_number, order):
        if order == self.last and not healthy:
            return
        self.last = order
        self.store.set(self.name_of(round_number), str(order))  # CULPRIT

    def ask(self, round_number):
        return self.store.get(self.name_of(round_number))


def main():
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    orders = Orders(dist.distributed_c10d._get_default_store())
    print("READY", flush=True)
    for number in range(10**6):
        if dist.get_rank() == 0:
            orders.tell(number, number // 2 if number > 6 else number)
        else:
            orders.ask(number)
        dist.all_reduce(torch.ones(1))
        time.sleep(0.02)


main()
