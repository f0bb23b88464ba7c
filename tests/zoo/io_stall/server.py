# SPDX-License-Identifier: Apache-2.0
"""Rank 1 sends a request to a metadata server over TCP that accepts and never answers."""
import socket
import sys
import threading
import time

import torch.distributed as dist


def serve(listener, healthy):
    connection, _ = listener.accept()
    while True:
        if healthy and connection.recv(10):
            connection.sendall(b"ok")
        time.sleep(0.1)


def ask_server(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"shards")
        return connection.recv(100)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, "--healthy" in sys.argv), daemon=True).start()
    print("READY", flush=True)
    if dist.get_rank() == 1:
        ask_server(listener.getsockname()[1])
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
