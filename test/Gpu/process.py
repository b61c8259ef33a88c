"""Commands that end in time, with everything they started."""
import math
import os
import signal
import subprocess
import time

import libraries


class NotRun(Exception):
    """Something was not run, or did not end, and so tells nothing: the text says why."""


class Clock:
    """When what runs now must have ended."""
    deadline = math.inf

    @classmethod
    def left(cls):
        return cls.deadline - time.monotonic()


def call(command, limit_s=240, environment=None):
    """The finished process: 124 where it did not end in time, 127 where it does not start."""
    limit_s = min(limit_s, Clock.left())
    if limit_s < 1:
        raise NotRun("no time is left")
    try:
        started = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace", env=environment or libraries.ENVIRONMENT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
    try:
        out, err = started.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        out, err = started.communicate()
        why = f"did not end in {limit_s:.0f} s: {err[-300:]}".strip(": ")
        return subprocess.CompletedProcess(command, 124, out, why)
    return subprocess.CompletedProcess(command, started.returncode, out, err)


def ended(command, **how):
    """The same, of what did end."""
    done = call(command, **how)
    if done.returncode == 124:
        raise NotRun(done.stderr)
    return done
