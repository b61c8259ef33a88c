"""launch.py RANKS COMMAND...: as many processes, which find each other by sockets and torchrun's variables."""
import os
import socket
import subprocess
import sys

with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1]), "WORLD_SIZE": sys.argv[1]}
runs = [subprocess.Popen(sys.argv[2:], env={**os.environ, **told, "RANK": str(rank)})
        for rank in range(int(sys.argv[1]))]
sys.exit(max(run.wait() & 0xff for run in runs))
