"""Several processes that serve one port: made by fork, so that they share what was made before, the schema above all.

uvicorn's own supervisor starts fresh interpreters: each would compile the model anew and keep its own copy.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from types import FrameType

logger = logging.getLogger(__name__)

GAVE_UP = 1
INTERRUPTED = 130
QUICK_DEATH_SECS = 1.0
"""A worker that lives for a shorter time has failed to start."""
MOST_FAILED_STARTS = 5
"""So many in a row with no worker left, and starting another one would not help."""
BACKOFF_SECS = 0.1
MOST_BACKOFF_SECS = 3.0
STOP_MARGIN_SECS = 2.0
"""What a worker has for its end beyond the time that running requests have."""

Work = Callable[[socket.socket, int], int]
"""Serves a socket and gives the exit code; the number is a descriptor that is readable once the parent is gone."""

_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Workers:
    """Starts the workers, replaces those that die, and stops them all when it is asked to stop."""

    def __init__(self, work: Work, grace_secs: float, listeners: Sequence[socket.socket]) -> None:
        """Take what a worker does until its SIGTERM, how long that may last then, and a socket for each worker."""
        self._work = work
        self._grace_secs = grace_secs
        # They stay open here: who connects while a worker is being replaced waits for the new one.
        self._listeners = listeners
        self._alive: dict[ForkProcess, tuple[socket.socket, float]] = {}
        """The workers, with the socket of each and when it was started."""
        self._failed_starts = 0
        self._next_start = 0.0
        self._signal: int | None = None
        # Nothing is written to it; its end is that of this process.
        self._parent, self._parent_end = os.pipe()

    def run(self) -> int:
        """Run until SIGTERM or SIGINT and return the exit code of the process."""
        with self._signals() as woken:
            while self._signal is None and (self._alive or self._failed_starts < MOST_FAILED_STARTS):
                delay_secs = self._next_start - time.monotonic()
                if delay_secs <= 0:
                    self._complete()
                is_complete = len(self._alive) == len(self._listeners)
                wait([woken, *(worker.sentinel for worker in self._alive)], None if is_complete else delay_secs)
                for worker in [each for each in self._alive if not each.is_alive()]:
                    self._bury(worker)
            self._stop()
        if self._signal is None:
            logger.error("the workers die as soon as they are started, giving up")
            return GAVE_UP
        return INTERRUPTED if self._signal == signal.SIGINT else 0

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        """Hear signals by a socket: another thread may get them, and `wait` would sleep on."""
        woken, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        for number in _STOPPING:
            signal.signal(number, self._hear)
        with woken, waker:
            try:
                yield woken
            finally:
                signal.set_wakeup_fd(-1)

    def _hear(self, number: int, _: FrameType | None) -> None:
        self._signal = number

    def _complete(self) -> None:
        unserved = list(self._listeners)
        for listener, _ in self._alive.values():
            unserved.remove(listener)
        for listener in unserved:
            self._start(listener)

    def _start(self, listener: socket.socket) -> None:
        worker = multiprocessing.get_context("fork").Process(target=self._begin, args=(listener,))
        # A signal that comes before the new process has handlers of its own must not be taken by ours.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            worker.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        self._alive[worker] = listener, time.monotonic()

    def _begin(self, listener: socket.socket) -> None:
        """Begin a worker's life."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        os.close(self._parent_end)
        for other in self._listeners:
            if other is not listener:
                other.close()
        sys.exit(self._work(listener, self._parent))

    def _bury(self, worker: ForkProcess) -> None:
        """Tell of a worker's death, and let the next start wait where starts keep failing."""
        died = time.monotonic()
        _, started = self._alive.pop(worker)
        is_failed_start = died - started < QUICK_DEATH_SECS
        level = logging.ERROR if worker.exitcode else logging.INFO
        logger.log(level, "worker %d ended with %d, starting another", worker.pid, worker.exitcode)
        worker.close()
        self._failed_starts = self._failed_starts + 1 if is_failed_start else 0
        if is_failed_start:
            self._next_start = died + min(BACKOFF_SECS * 2**self._failed_starts, MOST_BACKOFF_SECS)

    def _stop(self) -> None:
        # Nobody is to wait for an answer in a queue that nobody will look into again.
        for listener in self._listeners:
            listener.close()
        for worker in self._alive:
            worker.terminate()
        deadline = time.monotonic() + self._grace_secs + STOP_MARGIN_SECS
        for worker in self._alive:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                logger.error("worker %d does not end, killing it", worker.pid)
                worker.kill()
                worker.join()
