"""Attacks on the sandbox itself: each is a text that tries something and says whether it got through.

The tests run all of them in every set-up; `kernelgate doctor` runs them with one layer switched off at a time, which tells
what each layer alone stops. A probe is held when the run ended the way it should, the text did not report a breach, and no
target outside has been touched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import Template

from worker.sandbox.outcome import End, Finished, Limits, SessionEnded
from worker.sandbox.sandbox import Sandbox

from .targets import Targets

LIMITS = Limits(wall_s=8, cpu_s=6, memory_mb=256, scratch_mb=16, output_kb=64, processes=24, open_files=64)

PRELUDE = """
import ctypes, mmap, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def held(*words): print("HELD", *words, flush=True)
def breach(*words): print("BREACH", *words, flush=True)
def none_of(**attempts):
    for name, attempt in attempts.items():
        try:
            result = attempt()
        except (OSError, RuntimeError, ValueError):
            continue
        if result is not False:
            breach(name, repr(result)[:200])
    held()
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def read(path): return open(path, "rb").read(400)
def write(path, text="x"):
    with open(path, "w") as file: file.write(text)
    if path.endswith("/kg"): os.unlink(path)
X86 = os.uname().machine == "x86_64"
def fork_all(count, child):
    made = 0
    for _ in range(count):
        try:
            if os.fork() == 0:
                try: child()
                finally: os._exit(0)
        except OSError: break
        made += 1
    return made
"""


@dataclass(frozen=True)
class Probe:
    """An attack. name: in words. code: Template text over Targets.names(). ends: how the run may end. limits: of the run."""

    name: str
    code: str
    ends: tuple[End, ...] = (End.EXITED,)
    says: bool = True  # the text must have said HELD: without it, it did not get to try
    limits: Limits = LIMITS
    longest_ms: float = 6000
    most_output: int = 64 * 1024


PROBES: tuple[Probe, ...] = (
    # Resources.
    Probe("fork bomb", "held(n) if (n := fork_all(3000, lambda: time.sleep(5))) <= 24 else breach(n)"),
    Probe(
        "thread bomb",
        "import threading\nn = 0\ntry:\n"
        "  for n in range(3000): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
        "except RuntimeError: pass\nheld(n) if n <= 24 else breach(n)",
    ),
    Probe("memory bomb", "a = []\nwhile True: a.append(bytearray(b'x' * (4 << 20)))", (End.MEMORY,), says=False),
    Probe(
        "memory bomb by many children",
        "def eat():\n  a = [bytearray(b'x' * (1 << 20)) for _ in range(100)]; time.sleep(5)\nfork_all(8, eat)\ntime.sleep(6)",
        (End.MEMORY,),
        says=False,
    ),
    Probe(
        "memory that is shared by children",
        "a = bytearray(b'x' * (100 << 20))\nm = [mmap.mmap(-1, 64 << 20) for _ in range(4)]\n"
        "fork_all(2, lambda: time.sleep(5))\nfor one in m: one.write(b'x' * (64 << 20))\ntime.sleep(5)",
        (End.MEMORY,),
        says=False,
    ),
    Probe(
        "memory in forks of a full parent",
        "a = bytearray(b'x' * (280 << 20))\nfork_all(4, lambda: time.sleep(5))\ntime.sleep(5)",
        (End.MEMORY,),
        says=False,
    ),
    Probe(
        "memory in page tables",
        "m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n"
        "for at in range(0, 1 << 40, 2 << 20): m[at]\nbreach('2 GB of tables')",
        (End.MEMORY,),
        says=False,
    ),
    Probe(
        "memory in socket buffers",
        "n = 0\nkept = []\ntry:\n  while n < 64 << 20:\n    kept += (pair := socket.socketpair())\n"
        "    pair[0].setblocking(False)\n"
        "    while True:\n      try: n += pair[0].send(b'x' * 65536)\n      except BlockingIOError: break\n"
        "except OSError: pass\nbreach(n) if n > 6 << 20 else held(n)",
    ),
    Probe(
        "memory in memory files",
        "n = 0\ntry:\n  while n < 40:\n    fd = os.memfd_create('x'); n += os.write(fd, b'x' * (8 << 20)) >> 20\n"
        "except OSError: pass\nbreach(n) if n > 32 else held(n)",
    ),
    Probe(
        "memory in System V segments",
        "none_of(shm=lambda: call(29 if X86 else 194, 0, 64 << 20, 0o1600), msg=lambda: call(68 if X86 else 186, 0, 0o1600),"
        " sem=lambda: call(64 if X86 else 190, 0, 1, 0o1600))",
    ),
    Probe(
        "one file that fills the disk",
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nn = 0\ntry:\n  with open('big', 'wb', 0) as f:\n"
        "    while n < 64: n += f.write(b'x' * (1 << 20)) >> 20\n"
        "except OSError: pass\nbreach(n) if n >= 64 else held(n)\ntime.sleep(1)",
        (End.SCRATCH,),
        says=False,
    ),
    Probe(
        "many files that fill the disk",
        "n = 0\ntry:\n  while n < 400: n += open(f'f{n}', 'wb', 0).write(b'x' * (1 << 20)) >> 20\nexcept OSError: pass\n"
        "breach(n) if n >= 400 else held(n)\ntime.sleep(1)",
        (End.SCRATCH,),
        says=False,
    ),
    Probe(
        "files without names that fill the disk",
        "n = 0\nkept = []\ntry:\n  while n < 48:\n    kept.append(open('f', 'wb', 0)); os.unlink('f')\n"
        "    n += kept[-1].write(b'x' * (1 << 20)) >> 20\nexcept OSError: pass\ntime.sleep(1)\nbreach(n)",
        (End.SCRATCH,),
        says=False,
    ),
    Probe(
        "files in /dev/shm and /tmp",
        "n = 0\nfor d in ('/dev/shm', '/tmp'):\n  try:\n"
        "    while n < 64: n += open(f'{d}/$marker{n}', 'wb', 0).write(b'x' * (1 << 20)) >> 20\n"
        "  except OSError: pass\nbreach(n) if n >= 40 else held(n)\n"
        "for d in ('/dev/shm', '/tmp'):\n  for k in range(64):\n"
        "    try: os.unlink(f'{d}/$marker{k}')\n    except OSError: pass",
        (End.EXITED, End.SCRATCH),
        says=False,
    ),
    Probe(
        "flood of empty files",
        "n = 0\ntry:\n  while n < 4000: os.close(os.open(f'i{n}', os.O_CREAT | os.O_WRONLY)); n += 1\n"
        "except OSError: pass\nbreach(n) if n >= 4000 else held(n)\ntime.sleep(1)",
        (End.SCRATCH,),
        says=False,
    ),
    Probe(
        "flood of descriptors",
        "n = 0\ntry:\n  while n < 5000: os.dup(0); n += 1\nexcept OSError: pass\nheld(n) if n <= 64 else breach(n)",
    ),
    Probe(
        "100 MB of output", "for _ in range(100): os.write(1, b'x' * (1 << 20))\nbreach()", (End.OUTPUT,), says=False
    ),
    Probe(
        "output by many children",
        "fork_all(8, lambda: [os.write(1 + k % 2, b'x' * 4096) for k in range(1 << 16)])\ntime.sleep(5)\nbreach()",
        (End.OUTPUT,),
        says=False,
    ),
    Probe(
        "burning CPU time",
        "while True: pass",
        (End.CPU,),
        says=False,
        limits=replace(LIMITS, cpu_s=0.5),
        longest_ms=4000,
    ),
    Probe(
        "burning CPU time in children",
        "def burn():\n  while True: pass\nfork_all(4, burn)\ntime.sleep(6)",
        (End.CPU,),
        says=False,
        limits=replace(LIMITS, cpu_s=0.5),
        longest_ms=4000,
    ),
    Probe("sleeping", "time.sleep(60)", (End.WALL,), says=False, limits=replace(LIMITS, wall_s=0.5), longest_ms=1500),
    Probe(
        "stopping itself and its children",
        "fork_all(3, lambda: os.kill(os.getpid(), signal.SIGSTOP))\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)",
        (End.WALL,),
        says=False,
        limits=replace(LIMITS, wall_s=0.5),
        longest_ms=1500,
    ),
    Probe(
        "core dump",
        "libc.prctl(4, 1, 0, 0, 0)\nif os.fork() == 0: os.abort()\nstatus = os.wait()[1]\n"
        "breach('core dumped') if os.WCOREDUMP(status) else held(status)",
    ),
    # Outliving the run.
    Probe(
        "daemon",
        "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
        "    os.execv('/usr/bin/sleep', ['$marker', '60'])\n  os._exit(0)\ntime.sleep(.1)\nheld()",
        longest_ms=2500,
    ),
    Probe("child that keeps stdout open", "if os.fork() == 0:\n  os.setsid(); time.sleep(60)\nheld()", longest_ms=2500),
    Probe(
        "child that goes on when its parent leaves",
        "if os.fork():\n  held(); os._exit(3)\nwhile True: time.sleep(1)",
        longest_ms=2500,
    ),
    Probe(
        "stopped child",
        "if os.fork() == 0:\n  os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(.1)\nheld()",
        longest_ms=2500,
    ),
    # Files.
    Probe("a readable secret", "none_of(secret=lambda: read('$secret'))"),
    Probe("a writable folder", "none_of(write=lambda: write('$writable/x'), mkdir=lambda: os.mkdir('$writable/d'))"),
    Probe(
        "writing to the system",
        "none_of(**{p: (lambda p=p: write(p)) for p in ('/usr/kg', '/etc/kg', '/kg', '/var/tmp/kg', '/usr/bin/kg', '/lib/kg',"
        " '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/dev/kg', '/etc/passwd')})",
    ),
    Probe(
        "homes, accounts, logs, keys",
        # A home may hold the way to the interpreter and no more.
        "none_of(**{p: (lambda p=p: len(os.listdir(p)) > (p in ('/root', '/home'))) for p in ('/root', '/home', '/var/log',"
        " '/root/.ssh', '/run', '/proc/driver', '/sys/kernel', '/boot')}, shadow=lambda: read('/etc/shadow'),"
        " accounts=lambda: b'root:' in read('/etc/passwd'), kcore=lambda: read('/proc/kcore'))",
    ),
    Probe(
        "owner, mode, times and attributes of files outside",
        "none_of(mode=lambda: os.chmod('$secret', 0o600), cut=lambda: os.truncate('$secret', 0),"
        " times=lambda: os.utime('$secret', (1, 1)), attribute=lambda: os.setxattr('$secret', 'user.x', b'x'),"
        " owner=lambda: os.chown('$secret', -1, os.getgid()), watch=lambda: call(294 if X86 else 26, 0))",
    ),
    Probe("symbolic link to a secret", "os.symlink('$secret', 'l')\nnone_of(link=lambda: read('l'))"),
    Probe(
        "hard link to a secret",
        "none_of(link=lambda: os.link('$secret', 'l'), system=lambda: os.link('/usr/bin/env', 'e'))",
    ),
    Probe(
        "root of another process",
        "none_of(**{f'p{p}': (lambda p=p: read(f'/proc/{p}/root$secret')) for p in (1, 2, os.getppid(), $victim, $worker)},"
        " up=lambda: read('../' * 20 + '$secret'))",
    ),
    Probe(
        "devices",
        "none_of(disk=lambda: os.mknod('d', 0o60600, os.makedev(254, 0)), mem=lambda: os.open('/dev/mem', os.O_RDONLY),"
        " kmsg=lambda: os.open('/dev/kmsg', os.O_RDONLY), fuse=lambda: os.open('/dev/fuse', os.O_RDWR),"
        " ptmx=lambda: os.open('/dev/ptmx', os.O_RDWR), net=lambda: os.open('/dev/net/tun', os.O_RDWR))",
    ),
    # Secrets of other processes.
    Probe("environment", "breach() if any('$words' in v for v in os.environ.values()) else held(len(os.environ))"),
    Probe(
        "other processes through /proc",
        "seen = []\nfor p in {*range(1, 60), *range($victim - 60, $victim + 60), $worker, os.getppid()}:\n"
        "  for f in ('environ', 'cmdline'):\n"
        "    try: seen += [p] if b'$words' in (t := read(f'/proc/{p}/{f}')) or b'victim' in t else []\n"
        "    except OSError: pass\nbreach(seen) if seen else held()",
    ),
    Probe(
        "memory of other processes",
        "iov = (ctypes.c_long * 2)(ctypes.addressof(b := ctypes.create_string_buffer(16)), 16)\n"
        "none_of(**{f'mem{p}': (lambda p=p: os.open(f'/proc/{p}/mem', os.O_RDONLY)) for p in (1, os.getppid(), $victim)"
        " if p != os.getpid()}, vm=lambda: call(310 if X86 else 270, $victim, iov, 1, iov, 1, 0))",
    ),
    Probe(
        "tracing",
        "none_of(**{f'p{p}': (lambda p=p: call(101 if X86 else 117, 16, p, 0, 0)) for p in (1, os.getppid(), $victim)},"
        " getfd=lambda: call(438, os.pidfd_open($victim), 0, 0))",
    ),
    Probe(
        "signals to others",
        "none_of(**{f'p{p}': (lambda p=p: os.kill(p, signal.SIGKILL)) for p in ($victim, $worker)},"
        " parent=lambda: os.getppid() > 0 and os.kill(os.getppid(), signal.SIGTERM),"
        " pidfd=lambda: signal.pidfd_send_signal(os.pidfd_open($victim), signal.SIGKILL))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntry: os.kill(-1, signal.SIGTERM)\nexcept OSError: pass",
    ),
    Probe(
        "signals through a descriptor",
        "import fcntl\nr, w = os.pipe()\nnone_of(owner=lambda: fcntl.fcntl(r, 8, $victim) and False,"
        " signal=lambda: fcntl.fcntl(r, 10, 9))\n"
        "try: fcntl.fcntl(r, fcntl.F_SETFL, 0o20000 | os.O_NONBLOCK)\nexcept OSError: pass\nos.write(w, b'x')\ntime.sleep(.1)",
    ),
    Probe(
        "limits and priority of others",
        "none_of(limit=lambda: call(302 if X86 else 261, $victim, 7, (ctypes.c_ulong * 2)(3, 3), None),"
        " priority=lambda: os.setpriority(os.PRIO_PROCESS, $victim, 19),"
        " all=lambda: os.setpriority(os.PRIO_USER, 0, 19), affinity=lambda: os.sched_setaffinity($victim, {0}))",
    ),
    Probe(
        "inherited descriptors",
        "given = {0, 1, 2, *globals().get('fds', ())} | ({channel.fileno()} if 'channel' in globals() else set())\n"
        "none_of(**{f'fd{n}': (lambda n=n: os.fstat(n)) for n in range(400) if n not in given})",
    ),
    # Networks and other ways to talk.
    Probe("tcp to loopback", "none_of(tcp=lambda: socket.create_connection(('127.0.0.1', $tcp), 1))"),
    Probe(
        "udp to loopback",
        "none_of(udp=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', $udp)))",
    ),
    Probe("a unix socket", "none_of(unix=lambda: socket.socket(socket.AF_UNIX).connect('$stream'))"),
    Probe(
        "a unix socket by datagram",
        "def pair():\n  return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]\n"
        "none_of(send=lambda: pair().sendto(b'x', '$datagram'), connect=lambda: socket.socketpair()[0].connect('$stream'))",
    ),
    Probe("an abstract socket", "none_of(abstract=lambda: socket.socket(socket.AF_UNIX).connect('\\0$abstract'))"),
    Probe(
        "exotic sockets",
        "none_of(**{f'family{f}': (lambda f=f, k=k: socket.socket(f, k)) for f, k in"
        " ((16, 3), (17, 3), (38, 5), (40, 1), (10, 1), (15, 3))})",
    ),
    Probe(
        "out-of-band bytes on the channel",
        "none_of(send=lambda: channel.send(b'x', socket.MSG_OOB), receive=lambda: channel.recv(1, socket.MSG_OOB),"
        " message=lambda: channel.sendmsg([b'x'], [], socket.MSG_OOB)) if 'channel' in globals() else held()",
    ),
    Probe("kernel keys", "none_of(add=lambda: call(248 if X86 else 217, b'user', b'kg', b'x', 1, -3))"),
    Probe(
        "the terminal",
        "none_of(tty=lambda: os.open('/dev/tty', os.O_RDWR), push=lambda: call(16 if X86 else 29, 0, 0x5412, b'x'))",
    ),
    # Privileges and kernel surface.
    Probe(
        "becoming root",
        "none_of(setuid=lambda: os.setuid(0), setgid=lambda: os.setgid(0), groups=lambda: os.setgroups([0]),"
        " su=lambda: os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn('/bin/su', ['su', '-c', 'true'], {},"
        " file_actions=[(os.POSIX_SPAWN_OPEN, 2, '/dev/null', os.O_WRONLY, 0)]), 0)[1]) == 0)",
    ),
    Probe(
        "mounts and namespaces",
        "none_of(user=lambda: call(272 if X86 else 97, 0x10000000), mounts=lambda: call(272 if X86 else 97, 0x20000),"
        " chroot=lambda: os.chroot('/'), tmpfs=lambda: call(165 if X86 else 40, b'x', b'/tmp', b'tmpfs', 0, 0),"
        " tree=lambda: call(428, -100, b'/', 1), setns=lambda: call(308 if X86 else 268, 0, 0))",
    ),
    Probe(
        "a child in new namespaces",
        "SIGCHLD = 17\ndef clone(flags):\n  pid = libc.syscall(56 if X86 else 220, flags | SIGCHLD, 0, 0, 0, 0)\n"
        "  if pid == 0: os._exit(0)\n  if pid < 0: raise OSError\n"
        "none_of(user=lambda: clone(0x10000000), net=lambda: clone(0x50000000))",
    ),
    Probe(
        "kernel surface",
        "fd = (ctypes.c_char * 128)()\n"
        "none_of(uring=lambda: call(425, 1, fd), bpf=lambda: call(321 if X86 else 280, 0, fd, 128),"
        " perf=lambda: call(298 if X86 else 241, fd, 0, -1, -1, 0), fault=lambda: call(323 if X86 else 282, 1),"
        " handle=lambda: call(304 if X86 else 265, -100, fd, 0), log=lambda: call(103 if X86 else 116, 3, fd, 100),"
        " pages=lambda: call(279 if X86 else 239, $victim, 0, 0, 0, 0, 0))",
    ),
    Probe(
        "the other calling convention",
        "def child():\n  libc.syscall(0x40000000 + 39); breach('x32'); time.sleep(.1)\n"
        "if not X86 or os.fork():\n  status = os.wait()[1] if X86 else 9\n"
        "  held() if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 31 or not X86 else breach(status)\n"
        "else:\n  libc.syscall(0x40000000 + 39); os._exit(0)",
    ),
)


@dataclass(frozen=True)
class Outcome:
    """Whether a probe was held, and in a few words why not."""

    held: bool
    detail: str
    finished: Finished


def attack(sandbox: Sandbox, probe: Probe, targets: Targets, *, warm: bool) -> Outcome:
    """Runs a probe as a command or (warm) as a session. Raises SandboxError."""
    code = PRELUDE + Template(probe.code).substitute(targets.names())
    finished = _in_session(sandbox, code, probe.limits) if warm else _as_command(sandbox, code, probe.limits)
    problems = list(_problems(probe, finished))
    if damage := targets.damage():
        problems.append(damage)
    return Outcome(not problems, "; ".join(problems), finished)


def _as_command(sandbox: Sandbox, code: str, limits: Limits) -> Finished:
    return sandbox.run([sandbox.python, "-I", "-S", "-c", code], limits=limits)


def _in_session(sandbox: Sandbox, code: str, limits: Limits) -> Finished:
    with sandbox.session(code, limits=limits) as session:
        try:
            session.read(1, within_s=limits.wall_s + 10)
        except SessionEnded as ended:
            return ended.finished
        return session.finish()


def _problems(probe: Probe, finished: Finished) -> list[str]:
    said = finished.stdout.decode(errors="replace")
    found = []
    if finished.end not in probe.ends:
        found.append(f"it ended as {finished.end}, not {' or '.join(probe.ends)}")
    if "BREACH" in said:
        found.append(said[said.index("BREACH") :][:200].strip())
    elif probe.says and "HELD" not in said:
        found.append(f"it could not be tried: {finished.stderr.decode(errors='replace')[-200:].strip()}")
    if finished.wall_ms > probe.longest_ms:
        found.append(f"it took {finished.wall_ms:.0f} ms, not {probe.longest_ms:.0f}")
    if len(finished.stdout) + len(finished.stderr) > probe.most_output:
        found.append(f"{len(finished.stdout) + len(finished.stderr)} bytes of output were kept")
    return found
