# SPDX-License-Identifier: Apache-2.0
from guards import Guarded


class Ledger:
    def __init__(self):
        self.stock, self.prices = {}, {}

    def sell(self, item):
        with Guarded(self.stock) as stock:
            stock[item] = stock.get(item, 0) - 1
            self.price(item)

    def price(self, item):
        with Guarded(self.prices) as prices:  # CULPRIT
            prices[item] = prices.get(item, 1.0) * 1.01
