"""``python -m interlock.compiling.helper``: lowers specs, one at a time, until its input ends."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time

import psutil

from interlock.child import private_stdout, write
from interlock.compiling.messages import (
    TO_HELPER,
    Answer,
    AnyJob,
    Check,
    Checked,
    Job,
    Lowered,
    Ready,
    Refused,
    Setup,
    Validate,
    Validated,
)
from interlock.compiling.trial import Trial
from interlock.constraints.schema import SchemaOptions
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.errors import InterlockError

_RECURSION_LIMIT = 5_000  # schemas are bounded in depth; the walkers take several frames a level

# A full collection takes longer than most jobs, but what old caches dropped in cycles is only found by one.
_JOBS_PER_COLLECTION = 500

# A third of what a thread of the model gets where they share a core: streams keep their pace, and a schema still compiles
# beside a model that takes all cores.
_NICENESS = 5

_WARM_UP = ConstraintSpec(root=JsonValue('{"type": "object"}'))  # the first compile loads much code


def main() -> None:
    """Serve the pool on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool decides when a helper ends
    requests, answers = sys.stdin.buffer, private_stdout()
    setup = TO_HELPER.read(requests)
    if not isinstance(setup, Setup):
        raise SystemExit("a helper is started by its pool")
    sys.setrecursionlimit(_RECURSION_LIMIT)
    trial = Trial(
        setup.special_tokens,
        setup.documents,
        SchemaOptions(guards=setup.guards, limits=setup.schema_limits),
    )
    trial.run(_WARM_UP)
    _limit_memory(setup.memory_bytes)
    os.nice(_NICENESS)
    gc.disable()  # a full collection walks all that earlier jobs left in caches: longer than most jobs
    gc.freeze()
    write(answers, Ready())
    num_jobs = 0
    while isinstance(job := TO_HELPER.read(requests), AnyJob):
        signal.setitimer(signal.ITIMER_PROF, setup.cpu_s)  # its signal ends the process, in native code too
        answer = run(trial, job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write(answers, answer)
        num_jobs += 1
        gc.collect(2 if num_jobs % _JOBS_PER_COLLECTION == 0 else 0)  # 0: what this job left


def run(trial: Trial, job: AnyJob) -> Answer:
    """The answer to one job."""
    started = time.perf_counter()
    try:
        return _answer(trial, job, started)
    except InterlockError as error:
        refused = error
    except (MemoryError, RecursionError):
        refused = InterlockError(
            "constraint_too_complex", "the constraint exceeds the compiler's memory or depth"
        )
    except Exception as error:  # noqa: BLE001 - the edge of a process: the pool gets an answer and goes on
        refused = InterlockError("compile_failed", f"the compiler failed: {type(error).__name__}: {error}")
    return Refused.of(refused, time.perf_counter() - started)


def _answer(trial: Trial, job: AnyJob, started: float) -> Answer:
    match job:
        case Job(spec=spec, documents=documents):
            constraint = trial.run(ConstraintSpec.from_json(spec), documents)
            return Lowered(constraint, time.perf_counter() - started)
        case Check(spec=spec, instances=instances, documents=documents):
            found = trial.check(ConstraintSpec.from_json(spec), instances, documents)
            return Checked(json.dumps(found).encode())
        case Validate(pairs=pairs):
            return Validated(tuple(trial.is_valid(schema, document) for schema, document in pairs))


def _limit_memory(memory_bytes: int) -> None:
    """Bound what this process may allocate beyond what it holds now; a platform without the limit goes without."""
    held_bytes = getattr(psutil.Process().memory_info(), "data", 0)
    limit = held_bytes + memory_bytes
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ValueError, OSError):
        return


if __name__ == "__main__":
    main()
