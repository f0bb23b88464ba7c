# SPDX-License-Identifier: Apache-2.0
"""Stands in a for loop of one shape, for tests/unit/stacks/python_iterators_test.cc: python_loops.py MOOD. Says "ready" when it stands,
in its third round. The DataLoader is torch's, reduced to what is read of it."""
import itertools
import os
import sys
import threading
import types


def stand(i):
    if i == 2:
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)


def ranges():
    for _ in range(4):
        for i in range(1, 9):
            stand(i - 1)


def sequences():
    for epoch in (1, 2):
        with threading.Lock():
            for i, item in enumerate(list("abcdefg")):
                stand(i)


def zipped():
    for i, (a, b) in enumerate(zip(list(range(9)), tuple(range(5)))):
        stand(i)


def sliced():
    for i in itertools.islice(list(range(20)), 6):
        stand(i)


def spinning():
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    for i in list(range(9)):
        if i == 2:
            print("ready", flush=True)
        while i == 2:
            abs(i)


def batches(n):
    for i in list(range(n)):
        yield i


def generator():
    for i in batches(7):
        stand(i)


def numbered():
    for i, item in enumerate(batches(7), 5):
        stand(item)


class Row:
    def __init__(self, number):
        self.number = number


def rows(n):
    for i in list(range(n)):
        yield Row(i)  # it stays above the iterator, in a slot that is free


def objects():
    for row in rows(7):
        stand(row.number)


def named():
    for i, key in enumerate({"loss": 1, "bleu": 2, "wer": 3}):
        stand(i)


def paired():
    for i, (name, value) in enumerate([("b", 1), ("a", 2), (3, 4)]):
        stand(i)


def of_objects():
    for i, row in enumerate(["a", Row(1), Row(2)]):
        stand(i)


def of_many():
    for i in list(range(99)):
        stand(i)


class Own:
    def __init__(self):
        self.i = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.i += 1
        return self.i


def own():
    for i in Own():
        stand(i)


def call():
    # no loop: an iterator that lies in a local, and a call
    iterator = iter([1, 2])
    stand(2 if iterator else 0)


def past():
    for _ in [1, 2]:
        pass
    stand(2)


progress = {}
exec(compile("class tqdm:\n    def __init__(self, over):\n        self.over = over\n"
             "    def __iter__(self):\n        for each in self.over:\n            yield each\n", "/opt/tqdm/std.py", "exec"), progress)


def bar():
    for i in progress["tqdm"](list(range(11))):
        stand(i)


class Strided:
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return iter(list(range(self.length)))


class Filtered(Strided):
    def __iter__(self):
        for i in list(range(self.length)):
            if i % 3:
                yield i


class RandomSampler(Strided):
    def __init__(self, length):
        self._num_samples = length

    def __iter__(self):
        yield from list(range(self._num_samples))


class BatchSampler:
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        sampler_iter = iter(self.sampler)
        if self.drop_last:
            for batch in zip(*[sampler_iter] * self.batch_size):
                yield list(batch)
        else:
            batch = list(itertools.islice(sampler_iter, self.batch_size))
            while batch:
                yield batch
                batch = list(itertools.islice(sampler_iter, self.batch_size))


class OldBatchSampler(BatchSampler):
    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch


OldBatchSampler.__name__ = "BatchSampler"


class Numbers:
    pass


class _SingleProcessDataLoaderIter:
    def __init__(self, batches):
        self._dataset, self._dataset_kind, self._auto_collation = Numbers(), 0, True
        self._index_sampler, self._sampler_iter, self._num_yielded = batches, iter(batches), 0

    def __iter__(self):
        return self

    def __next__(self):
        next(self._sampler_iter)
        self._num_yielded += 1
        return self._num_yielded - 1


class _MultiProcessingDataLoaderIter(_SingleProcessDataLoaderIter):
    def __init__(self, batches):
        super().__init__(batches)
        self._send_idx = 0
        for _ in range(4):
            self.send()

    def send(self):
        if next(self._sampler_iter, None) is not None:
            self._send_idx += 1

    def __next__(self):
        self.send()
        self._num_yielded += 1
        return self._num_yielded - 1


class Fetcher:
    def __init__(self, items):
        self.dataset_iter = iter(items)


def over(loader):
    for i in loader:
        stand(i)


def loader():
    over(_SingleProcessDataLoaderIter(BatchSampler(Strided(41), 4, False)))


def short_loader():
    over(_SingleProcessDataLoaderIter(BatchSampler(Strided(41), 4, True)))


def old_loader():
    over(_SingleProcessDataLoaderIter(OldBatchSampler(Strided(41), 4, False)))


def workers():
    over(_MultiProcessingDataLoaderIter(BatchSampler(Strided(41), 4, False)))


def drained_workers():
    over(_MultiProcessingDataLoaderIter(BatchSampler(Strided(17), 4, False)))


def shuffled():
    over(_SingleProcessDataLoaderIter(BatchSampler(RandomSampler(41), 4, False)))


def filtered():
    over(_SingleProcessDataLoaderIter(BatchSampler(Filtered(41), 4, False)))


def iterable(items):
    loader = _SingleProcessDataLoaderIter(BatchSampler(itertools.repeat(None), 4, False))
    loader._dataset_kind, loader._dataset_fetcher = 1, Fetcher(items)
    for i in loader:
        list(itertools.islice(loader._dataset_fetcher.dataset_iter, 4))
        stand(i)


def iterable_list():
    iterable(list(range(30)))


def iterable_generator():
    iterable(batches(30))


class P2POp:
    def __init__(self, op, peer):
        self.op, self.peer, self.tag = op, peer, 0


def messages():
    c10d = sys.modules["torch.distributed.distributed_c10d"] = types.ModuleType("distributed_c10d")
    c10d.isend, c10d.irecv = lambda: None, lambda: None
    ops = [P2POp(c10d.isend, 1), P2POp(c10d.irecv, 1), P2POp(c10d.isend, 0), P2POp(len, None)]
    for i in list(range(4)):
        stand(i)


def two_lists_of_messages():
    sends, receives = [P2POp(len, 1)], [P2POp(len, 0)]
    for i in list(range(4)):
        stand(i if sends and receives else 0)


globals()[sys.argv[1]]()
