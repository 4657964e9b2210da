"""Prometheus metrics of the API process, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


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
        self.engine = Gauge(
            "interlock_engine",
            "Engine counters and gauges, as the worker reports them",
            ("name",),
            registry=self.registry,
        )
