"""Opens k9s in a terminal, shows tables and an object, and quits.

Usage: k9s.py K9S LOG SCREEN [objects], with KUBECONFIG. SCREEN gets the last awaited screen; with `objects` it also opens
objects of a definition.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pyte

COLUMNS, LINES, PATIENCE = 160, 40, 40
program, log, last, *more = sys.argv[1:]
screen = pyte.Screen(COLUMNS, LINES)
stream = pyte.ByteStream(screen)
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
command = [program, "--logFile", log, "--logLevel", "info", "--refresh", "2", "--splashless", "-A", "-c", "pods"]
# k9s opens its controlling terminal by name.
k9s = subprocess.Popen(
    command,
    stdin=theirs,
    stdout=theirs,
    stderr=theirs,
    start_new_session=True,
    preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    env=dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8"),
)
os.close(theirs)


def shows(*texts):
    """Feeds the screen until it contains all of these texts."""
    until = time.monotonic() + PATIENCE
    while not all(text in "\n".join(screen.display) for text in texts):
        ready, _, _ = select.select([ours], [], [], max(0, until - time.monotonic()))
        with open(last, "w") as file:
            print(*screen.display, sep="\n", file=file)
        if not ready:
            sys.exit(f"no {texts} on the screen:\n" + "\n".join(line.rstrip() for line in screen.display if line.strip()))
        try:
            stream.feed(os.read(ours, 65536))
        except OSError:
            sys.exit(f"k9s ended with {k9s.wait()}:\n" + "\n".join(line.rstrip() for line in screen.display if line.strip()))


def press(keys):
    os.write(ours, keys.encode())


def command_line(text):
    press(":")
    shows("🐶>")
    press(text + "\r")


shows("web-one", "shop")
command_line("deployments")
shows("front", "0/2")
press("d")
shows("RollingUpdate")
press("\x1b")
shows("deployments(")
command_line("crds")
shows("example.com", "Namespaced")
if more:
    press("\r")
    shows("blue")
    press("y")
    shows("finish: plain")
    press("\x1b")
    shows("widgets(")
command_line("quit")
sys.exit(k9s.wait(PATIENCE))
