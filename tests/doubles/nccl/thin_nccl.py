# SPDX-License-Identifier: Apache-2.0
"""NCCL through ctypes, as libraries outside torch use it: dlopen, dlsym, a call. $NCCL_FOLDER holds libnccl.so.2 and libcudart.so.13."""
import ctypes
import os
import pathlib
import time

FOLDER = pathlib.Path(os.environ["NCCL_FOLDER"])
cuda = ctypes.CDLL(str(FOLDER / "libcudart.so.13"))
nccl = ctypes.CDLL(str(FOLDER / "libnccl.so.2"))
TYPES = {"int8": (0, 1), "int32": (2, 4), "int64": (4, 8), "float32": (7, 4), "float64": (8, 8)}
OPS = {"sum": 0, "product": 1, "max": 2, "min": 3, "avg": 4}
SIZE = ctypes.c_size_t


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def check(code):
    if code not in (0, 7):
        raise RuntimeError(f"NCCL error {code}")


def shared_id(name, rank):
    """Rank 0 makes an id, the others read it: a file replaces the store."""
    path = pathlib.Path(os.environ["NCCL_IDS"]) / name
    unique = Id()
    if rank == 0:
        check(nccl.ncclGetUniqueId(ctypes.byref(unique)))
        path.with_suffix(".part").write_bytes(bytes(unique))
        path.with_suffix(".part").rename(path)
    while not path.exists():
        time.sleep(0.01)
    return Id.from_buffer_copy(path.read_bytes())


class Stream:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        check(cuda.cudaStreamCreate(ctypes.byref(self.handle)))

    def synchronize(self):
        check(cuda.cudaStreamSynchronize(self.handle))


class Communicator:
    def __init__(self, name="world", handle=None):
        self.rank, self.size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.handle = handle or ctypes.c_void_p()
        if handle is None:
            cuda.cudaSetDevice(0)
            check(nccl.ncclCommInitRank(ctypes.byref(self.handle), self.size, shared_id(name, self.rank), self.rank))

    def split(self, color, key):
        made = ctypes.c_void_p()
        check(nccl.ncclCommSplit(self.handle, color, key, ctypes.byref(made), None))
        return Communicator(handle=made)

    def _call(self, name, *arguments):
        """Uses the newer twin with a configuration if the library has it and $NCCL_TWINS asks for it."""
        twin = name + "Config"
        if os.environ.get("NCCL_TWINS") and hasattr(nccl, twin):
            check(getattr(nccl, twin)(*arguments, None))
        else:
            check(getattr(nccl, name)(*arguments))

    def all_reduce(self, data, count, dtype, op, stream):
        self._call("ncclAllReduce", data, data, SIZE(count), TYPES[dtype][0], OPS[op], self.handle, stream.handle)

    def broadcast(self, data, count, dtype, root, stream):
        self._call("ncclBroadcast", data, data, SIZE(count), TYPES[dtype][0], root, self.handle, stream.handle)

    def reduce(self, data, count, dtype, op, root, stream):
        self._call("ncclReduce", data, data, SIZE(count), TYPES[dtype][0], OPS[op], root, self.handle, stream.handle)

    def all_gather(self, data, out, count, dtype, stream):
        self._call("ncclAllGather", data, out, SIZE(count), TYPES[dtype][0], self.handle, stream.handle)

    def reduce_scatter(self, data, out, count, dtype, op, stream):
        self._call("ncclReduceScatter", data, out, SIZE(count), TYPES[dtype][0], OPS[op], self.handle, stream.handle)

    def send(self, data, count, dtype, peer, stream):
        check(nccl.ncclSend(data, SIZE(count), TYPES[dtype][0], peer, self.handle, stream.handle))

    def recv(self, data, count, dtype, peer, stream):
        check(nccl.ncclRecv(data, SIZE(count), TYPES[dtype][0], peer, self.handle, stream.handle))

    def destroy(self):
        check(nccl.ncclCommDestroy(self.handle))


def group_start():
    check(nccl.ncclGroupStart())


def group_end():
    check(nccl.ncclGroupEnd())


def buffer(count, dtype="float32"):
    memory = ctypes.c_void_p()
    check(cuda.cudaMalloc(ctypes.byref(memory), SIZE(count * TYPES[dtype][1])))
    return memory


def values(memory, count, kind=ctypes.c_float):
    return list((kind * count).from_address(memory.value))
