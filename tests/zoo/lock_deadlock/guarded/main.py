# SPDX-License-Identifier: Apache-2.0
"""Two threads take the locks of two tables in opposite order. The locks belong to Guarded objects that no variable refers to, and one thread
enters them in an ExitStack."""
import sys

import torch
import torch.distributed as dist

from ledger import Ledger
from repricer import Repricer


def work(ledger, n):
    for i in range(n):
        ledger.sell("item%d" % (i % 7))


def main():
    dist.init_process_group("gloo")
    ledger = Ledger()
    order = ("stock", "prices") if "--healthy" in sys.argv else ("prices", "stock")
    if dist.get_rank() == 1:
        Repricer(ledger, order).start()
    print("READY", flush=True)
    while True:
        work(ledger, 50)
        dist.all_reduce(torch.ones(8))


main()
