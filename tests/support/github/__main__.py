"""``python3 -m github --folder DIR --control SOCKET [--listen HOST:PORT ...]``: the server process.

With ``--listen`` a first world (number 1) listens there at once: a GitHub to try by hand. The CA is DIR/ca.pem."""
import argparse
import socket
import sys

from .control import Server
from .world import World


def main():
    p = argparse.ArgumentParser(prog="github")
    p.add_argument("--folder", required=True)
    p.add_argument("--control", required=True)
    p.add_argument("--listen", action="append", default=[])
    args = p.parse_args()
    server = Server(args.folder)
    if args.listen:
        server.count = 1
        server.worlds[1] = World(1)
        socks = []
        for where in args.listen:
            host, _, port = where.rpartition(":")
            socks.append(socket.create_server((host.strip("[]"), int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET))
        server.op_listen(server.worlds[1], [s.detach() for s in socks])
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(args.control)
    sock.listen(64)
    try:
        server.serve(sock)
    except KeyboardInterrupt:
        sys.exit(0)


main()
