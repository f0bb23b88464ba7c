# SPDX-License-Identifier: Apache-2.0
"""Rank 0 downloads from a server that sends a little every second; the others wait in a barrier, longer than the hang timeout."""
import socket
import threading
import time

import torch.distributed as dist


def serve(listener, pieces):
    connection, _ = listener.accept()
    with connection:
        for _ in range(pieces):
            connection.sendall(b"x" * 1024)
            time.sleep(1)


def download(address):
    with socket.create_connection(address) as connection:
        while connection.recv(65536):
            pass


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for _ in range(3):
        if dist.get_rank() == 0:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                threading.Thread(target=serve, args=(listener, 11), daemon=True).start()
                download(listener.getsockname())
        dist.barrier()


main()
