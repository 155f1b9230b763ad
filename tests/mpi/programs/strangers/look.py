"""Another user inspects the carrier's socket, greets it, and inspects processes. Arguments: SOCKET HELLO PID..."""

import os
import socket
import sys

path, hello = sys.argv[1], bytes.fromhex(sys.argv[2])


def attempt(what, call):
    try:
        print(what, call())
    except OSError as error:
        print(what, type(error).__name__)


def greet():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(10)
        connection.connect(path)
        connection.send(hello)
        return len(connection.recvmsg(4096, 4096)[0])


attempt("list", lambda: os.listdir(os.path.dirname(path)))
attempt("greet", greet)
for process in sys.argv[3:]:
    attempt("memory", lambda of=process: os.listdir(f"/proc/{of}/fd"))
    attempt("mapped", lambda of=process: open(f"/proc/{of}/mem", "rb"))
