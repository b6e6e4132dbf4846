#!/usr/bin/python3 -IS
"""Runs a program on a node that is not there: inside a mount namespace of its own (``unshare`` made it), with /dev, /sys and
/proc/driver as the order says, and with a seccomp filter that makes opening a device fail in a chosen way, or never return. The order
is JSON: argv[1]. The program cannot tell: no switch of its own is used.
"""
import ctypes
import errno
import json
import os
import signal
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
# what probes/nodes.c opens device nodes with, and nothing else does
DEVICE_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
SECCOMP, OPEN, OPENAT, STATFS = (317, 2, 257, 137) if os.uname().machine == "x86_64" else (277, -1, 56, 43)


def mount(source, target, kind, flags=0):
    if libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), None) < 0:
        raise OSError(ctypes.get_errno(), "mount %s on %s" % (source, target))


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def devices(order, top):
    """A /dev that holds the usual nodes and those of the order: every one is /dev/null in truth, or a socket (opening that gives ENXIO)."""
    dev = top + "/dev"
    os.makedirs(dev)
    mount("tmpfs", dev, "tmpfs")
    usual = ["null", "zero", "full", "random", "urandom", "shm", "pts", "fd", "stdin", "stdout", "stderr"]
    for name in usual:
        path = "/dev/" + name
        if os.path.islink(path):
            os.symlink(os.readlink(path), dev + "/" + name)
        elif os.path.isdir(path):
            os.mkdir(dev + "/" + name)
            mount(path, dev + "/" + name, None, MS_BIND | MS_REC)
        elif os.path.exists(path):
            put(dev + "/" + name, "")
            mount(path, dev + "/" + name, None, MS_BIND)
    for path in order.get("nodes", []):
        put(dev + path[4:], "")
        mount("/dev/null", dev + path[4:], None, MS_BIND)
    for path in order.get("lost", []):
        import socket

        s = socket.socket(socket.AF_UNIX)
        os.makedirs(os.path.dirname(dev + path[4:]), exist_ok=True)
        s.bind(dev + path[4:])
        s.close()
    mount(dev, "/dev", None, MS_BIND | MS_REC)


def seccomp(rules, action, listener):
    """rules: [(system call, argument with the flags, or None)]"""
    code = [(0x20, 0, 0, 0)]  # load the number
    for number, argument in rules:
        if number < 0:
            continue
        if argument is None:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, action)]
        else:  # ignore O_LARGEFILE, which C libraries add
            code += [(0x15, 0, 4, number), (0x20, 0, 0, 16 + 8 * argument), (0x54, 0, 0, 0xFFFF7FFF & ~0o400000),
                     (0x15, 0, 1, DEVICE_OPEN), (0x06, 0, 0, action), (0x20, 0, 0, 0)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    raw = b"".join(struct.pack("HBBI", *c) for c in code)
    buffer = ctypes.create_string_buffer(raw)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    fd = libc.syscall(SECCOMP, 1, 8 if listener else 0, program)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return fd


def main():
    order = json.loads(sys.argv[1])
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    top = order["top"]
    devices(order, top)
    mount("tmpfs", "/sys", "tmpfs")
    os.makedirs("/sys/bus/pci/devices")
    for i, (vendor, kind) in enumerate(order.get("pci", [])):
        put("/sys/bus/pci/devices/0000:%02x:00.0/vendor" % i, vendor + "\n")
        put("/sys/bus/pci/devices/0000:%02x:00.0/class" % i, kind + "\n")
    mount("tmpfs", "/proc/driver", "tmpfs")
    for name, text in order.get("files", {}).items():
        if name.startswith(("/proc/driver/", "/sys/")):
            put(name, text)
        else:
            put(top + "/bound" + name, text)
            mount(top + "/bound" + name, name, None, MS_BIND)
    for name in order.get("proc_gpus", []):
        os.makedirs("/proc/driver/nvidia/gpus/" + name)
    for path in order.get("hide", []):  # this process has all that it needs in memory; what it becomes is static
        mount("tmpfs", path, "tmpfs")
    if order.get("open") == "hang":
        rules = [(OPEN, 1), (OPENAT, 2)] + ([(STATFS, None)] if order.get("hang_statfs") else [])
        fd = seccomp(rules, 0x7FC00000, True)
        if os.fork() == 0:  # holds the listener and never answers
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            for other in (0, 1, 2):
                os.close(other)
            while True:
                signal.pause()
        os.close(fd)
    elif order.get("open"):
        seccomp([(OPEN, 1), (OPENAT, 2)], 0x00050000 | getattr(errno, order["open"]), False)
    os.execve(order["argv"][0], order["argv"], order["env"])


main()
