"""Prometheus metrics of the API process, in a registry of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# They would double the number of series only to say when the process started.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


_GAUGES = {
    "num_waiting": ("waiting_requests", "Requests that wait for a slot"),
    "num_running": ("running_requests", "Requests in a slot"),
    "num_slots": ("slots", "Sequences that can run at once; 0 while there is no worker"),
    "grammar_cache_bytes": ("grammar_cache_bytes", "Size of the cached grammars"),
    "prompt_cache_bytes": ("prompt_cache_bytes", "Size of the saved states"),
}
_COUNTERS = {
    "num_steps": ("steps", "Forward passes"),
    "num_prompt_tokens": ("prompt_tokens", "Prompt tokens that were prefilled"),
    "num_cached_tokens": ("cached_tokens", "Prompt tokens that were not prefilled again"),
    "num_restored_tokens": ("restored_tokens", "Tokens that came back from saved states"),
    "num_states_saved": ("saved_states", "States of slots that were saved"),
    "num_states_restored": ("restored_states", "Saved states that a request began with"),
    "num_states_evicted": ("evicted_states", "Saved states that gave way to others"),
    "num_generated_tokens": ("generated_tokens", "Tokens chosen"),
    "num_forced_tokens": ("forced_tokens", "Tokens that the grammar left no choice about"),
    "num_draft_tokens": ("draft_tokens", "Tokens guessed and verified"),
    "num_accepted_tokens": ("accepted_tokens", "Guessed tokens that were right"),
    "num_vetoed_tokens": ("vetoed_tokens", "Tokens that guards took out of masks"),
    "num_preempted": ("preemptions", "Times that a request lost its slot"),
    "num_backtracked": ("backtracks", "Times that guards took tokens of a request back"),
    "num_resumed": ("resumed_requests", "Requests that went on after the death of a worker"),
    "num_grammar_compiles": ("grammar_compiles", "Native compiles of grammars"),
    "num_grammar_cache_hits": ("grammar_cache_hits", "Grammars found in the cache"),
    "step_s": ("step_seconds", "Time in steps"),
    "forward_s": ("forward_seconds", "Part of it from a forward pass's launch to the selection of its tokens"),
    "mask_s": ("mask_seconds", "Part of that spent on masks"),
}


_PHASES = {
    "queue": "From submission to the first pass of a request",
    "compile": "Having the constraint of a request ready",
    "prefill": "From the first pass of a request to its first token",
    "decode": "From the first token of a request to its end",
    "mask": "Share of a request in the time spent on masks",
}


class EngineMetrics(Collector):
    """What the worker reports. values: by name of the field of ``EngineStats``; ``None`` shows no series.
    Counters begin at zero with each worker."""

    def __init__(self) -> None:
        self.values: Mapping[str, float] | None = None

    def describe(self) -> Iterator[Metric]:
        return self._families({})

    def collect(self) -> Iterator[Metric]:
        return iter(()) if self.values is None else self._families(self.values)

    def _families(self, values: Mapping[str, float]) -> Iterator[Metric]:
        for table, kind in ((_GAUGES, GaugeMetricFamily), (_COUNTERS, CounterMetricFamily)):
            for field, (name, help_text) in table.items():
                yield kind(f"interlock_engine_{name}", help_text, value=values.get(field, 0))


class Metrics:
    """All metrics, one attribute each. One instance per server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "interlock_requests",
            "Requests by endpoint and outcome",
            ("endpoint", "outcome"),
            registry=self.registry,
        )
        self.constrained = Counter(
            "interlock_constrained_requests",
            "Requests with a constraint, by kind",
            ("kind",),
            registry=self.registry,
        )
        self.in_flight = Gauge("interlock_requests_in_flight", "Requests being served", registry=self.registry)
        self.prompt_tokens = Counter("interlock_prompt_tokens", "Prompt tokens", registry=self.registry)
        self.completion_tokens = Counter(
            "interlock_completion_tokens", "Generated tokens", registry=self.registry
        )
        self.first_token_s = Histogram(
            "interlock_time_to_first_token_seconds",
            "Arrival to first token",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.request_s = Histogram(
            "interlock_request_seconds", "Arrival to last byte", buckets=_SECONDS, registry=self.registry
        )
        self.phases_s = {
            name: Histogram(f"interlock_request_{name}_seconds", text, buckets=_SECONDS, registry=self.registry)
            for name, text in _PHASES.items()
        }
        self.lowering_s = Histogram(
            "interlock_constraint_lowering_seconds",
            "Lowering a constraint in the compile pool, cache misses only",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.lowering = Counter(
            "interlock_constraint_lowering", "Lowerings by result", ("result",), registry=self.registry
        )
        self.worker_restarts = Counter(
            "interlock_worker_restarts", "Restarts of the model worker", registry=self.registry
        )
        self.engine = EngineMetrics()
        self.registry.register(self.engine)
