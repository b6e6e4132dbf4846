#!/usr/bin/python3 -IS
"""Makes a container without a container runtime: new pid, mount, network, uts and ipc namespaces, a root file system of its own, and
one program as PID 1 in it. Driven by ``harness.py``: a JSON order on descriptor 3 (a unix socket), listening sockets and the exit
status go back over it. Needs to be root; nothing outside the new namespaces is touched.
"""
import array
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import termios

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
# what a container runtime leaves to root: CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP
# NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE
KEEP = {0, 1, 3, 4, 27, 13, 6, 7, 31, 8, 10, 18, 5, 29}
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))


def mount(source, target, kind, flags=0, data=None):
    check(libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags),
                     data.encode() if data else None), "mount %s on %s" % (source, target))


def bind(source, target, readonly=False):
    mount(source, target, None, MS_BIND | MS_REC)
    if readonly:
        mount(source, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        req = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(s, SIOCGIFFLAGS, req))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def put(path, text, mode=0o644, uid=0, gid=0):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as f:
        f.write(text)
        os.fchown(fd, uid, gid)
        os.fchmod(fd, mode)


def folder(path, mode=0o755, uid=0, gid=0):
    os.makedirs(path, exist_ok=True)
    os.chown(path, uid, gid)
    os.chmod(path, mode)


def build_root(root, order):
    mount("tmpfs", root, "tmpfs", MS_NOSUID, "mode=0755,size=512m")
    for name in os.listdir("/"):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), root + "/" + name)
    for name in ["usr", "etc", "proc", "sys", "dev", "tmp", "run", "var/tmp", "var/test", "root", "home", "opt/init"]:
        folder(root + "/" + name)
    for name in ["lib", "lib64", "bin", "sbin"]:
        if not os.path.lexists(root + "/" + name) and os.path.isdir("/" + name):
            folder(root + "/" + name)
            bind("/" + name, root + "/" + name, True)
    bind("/usr", root + "/usr", True)
    bind("/sys", root + "/sys")
    for name in ("etc/ld.so.cache", "etc/os-release", "etc/ssl/openssl.cnf"):
        try:
            with open("/" + name, "rb") as f:
                data = f.read()
            os.makedirs(os.path.dirname(root + "/" + name), exist_ok=True)
            with open(root + "/" + name, "wb") as f:
                f.write(data)
        except OSError:
            pass
    for name, mode in (("tmp", 0o1777), ("run", order["run_mode"])):
        if order["readonly"]:
            mount("tmpfs", root + "/" + name, "tmpfs", MS_NOSUID | MS_NODEV, "mode=%o" % mode)
        folder(root + "/" + name, mode)
    folder(root + "/root", 0o700)
    dev = root + "/dev"
    mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=0755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        put(dev + "/" + name, "")
        bind("/dev/" + name, dev + "/" + name)
    folder(dev + "/shm", 0o1777)
    folder(dev + "/pts")
    mount("devpts", dev + "/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
    os.symlink("pts/ptmx", dev + "/ptmx")
    for n, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink("/proc/self/fd/%d" % n, dev + "/" + name)
    os.symlink("/proc/self/fd", dev + "/fd")
    for d in order["folders"]:
        folder(root + d["path"], d["mode"], d["uid"], d["gid"])
    for f in order["files"]:
        put(root + f["path"], f["text"], f["mode"], f["uid"], f["gid"])
    binds(root, [b for b in order["binds"] if not b["to"].startswith("/proc/")])
    for text in order["symlinks"]:
        os.symlink(text["to"], root + text["path"])


def binds(root, wanted):
    for b in wanted:
        if os.path.exists(root + b["to"]):
            pass
        elif os.path.isdir(b["from"]):
            os.makedirs(root + b["to"], exist_ok=True)
        else:
            put(root + b["to"], "")
        bind(b["from"], root + b["to"], b["readonly"])


def listen(order):
    socks = []
    for address, port in order["listen"]:
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in address:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((address, port))
        s.listen(128)
        socks.append(s)
    return socks


def become_init(root, order):
    mount("proc", root + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    binds(root, [b for b in order["binds"] if b["to"].startswith("/proc/")])
    os.chdir(root)
    if order["readonly"]:
        mount("none", root, None, MS_BIND | MS_REMOUNT | MS_RDONLY)
    check(libc.syscall(155, b".", b"."), "pivot_root")
    check(libc.umount2(b".", 2), "umount of the old root")
    os.chdir(order["cwd"])
    if order["pty"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for cap in range(64):
        if cap not in KEEP and cap not in order["keep_caps"] and libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0:
            break
    if order["no_new_privs"]:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups(order["groups"])
    os.setresgid(order["gid"], order["gid"], order["gid"])
    os.setresuid(order["uid"], order["uid"], order["uid"])
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.umask(order["umask"])
    # Python ignores PIPE and XFSZ; the program must not inherit that
    for s in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(s, signal.SIG_DFL)
    for name in order["ignored_signals"]:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.execve(order["program"], order["argv"], order["env"])


def serve_one(link):
    """One pod: order, namespaces, root, PID 1, its exit status."""
    data = b""
    while not data.endswith(b"\n"):
        piece = link.recv(1 << 20)
        if not piece:
            return
        data += piece
    order = json.loads(data)
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET), "unshare")
    socket.sethostname(order["hostname"])
    loopback_up()
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    socks = listen(order)
    build_root(order["root"], order)
    fds = array.array("i", [s.fileno() for s in socks])
    link.sendmsg([b"ready %d\n" % os.getpid()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if socks else [])
    if link.recv(10) != b"go\n":
        return
    for s in socks:
        s.close()
    pid = os.fork()
    if pid == 0:
        try:
            become_init(order["root"], order)
        except BaseException as why:
            os.write(2, ("pod: %s\n" % why).encode())
        os._exit(125)
    for fd in (0, 1, 2):
        os.close(fd)
    link.sendall(b"%d\n" % pid)
    status = os.waitpid(pid, 0)[1]
    link.sendall(b"exit %d\n" % status)


def child(link_fd, streams, server):
    """Forked from the server for one pod."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    server.close()
    for n, fd in enumerate(streams):
        os.dup2(fd, n, inheritable=True)
    for fd in streams:
        if fd > 2:
            os.close(fd)
    link = socket.socket(fileno=link_fd)
    link.set_inheritable(False)
    try:
        serve_one(link)
    except BaseException as failure:
        try:
            link.sendall(("failed %s\n" % failure).encode())
        except OSError:
            pass
        os._exit(1)
    os._exit(0)


def main():
    # a session of its own: a Ctrl-C at the terminal is for the tests, which then end this by closing the socket
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # helpers that ended are nobody's business
    server = socket.socket(fileno=3)
    server.set_inheritable(False)
    while True:
        data, fds, _, _ = socket.recv_fds(server, 16, 8)
        if not data:
            return
        if os.fork() == 0:
            child(fds[0], fds[1:4], server)
        for fd in fds:
            os.close(fd)


main()
