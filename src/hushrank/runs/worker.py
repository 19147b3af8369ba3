"""One process of a pool: carries out recipes that it is sent as lines of JSON, and answers with lines of JSON.

In: {"number", "recipe", "directory", "forgets", "options"}. Out: {"number", "share", "quality", "measure"} now and
then, at the end {"number", "error"} with null for a finished run. When the other end goes away, so does this process.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

from hushrank.engine.simulate import News
from hushrank.files import Json
from hushrank.locks import Busy
from hushrank.recipes.plugin import load_plugins
from hushrank.runs.pool import Job, describe_failure, read_job, run_job
from hushrank.runs.run import RunOptions

_PATIENCE = 30  # seconds


def main(plugins: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Why: a shell's background job is born deaf to it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # Why: what a plugin prints must not end up among the answers
    load_plugins(plugins)
    jobs: queue.Queue[Json] = queue.Queue()
    threading.Thread(target=listen, args=(sys.stdin, jobs), daemon=True).start()
    while True:
        carry_out(jobs.get(), answers)


def listen(lines: TextIO, jobs: queue.Queue[Json]) -> None:
    for line in lines:
        jobs.put(json.loads(line))
    os._exit(1)  # Why: nobody waits for the result any more, and a run can be left at any moment


def carry_out(job: Json, answers: TextIO) -> None:
    heard: dict[int, News] = {}
    lock = threading.Lock()

    def say(**words: object) -> None:
        with lock:
            print(json.dumps({"number": job["number"], **words}), file=answers, flush=True)

    def report(news: News) -> None:
        heard[news.batch] = news
        known = list(heard.values())
        share = sum(n.share for n in known) / news.n_batches
        say(share=share, quality=sum(n.vali for n in known) / len(known), measure=news.measure)

    try:
        todo = read_job(job)
        run_when_free(todo, RunOptions(out=todo.directory, resume=True, report=report, **job["options"]))
        say(error=None)
    except Exception as error:
        say(error=describe_failure(error))


def run_when_free(job: Job, options: RunOptions) -> None:
    """Why wait: the process of a pool that was killed may need a moment to notice."""
    for _ in range(_PATIENCE):
        try:
            run_job(job, options)
            return
        except Busy:
            time.sleep(1.0)
    run_job(job, options)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
