"""What the service counts for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from prompts.engine.spending import Meter
from storage.answer_records import Answer

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """The counters of one service; `registry` holds them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "trellis_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "trellis_request_seconds",
            "Seconds until a request was answered.",
            ("route",),
            registry=registry,
            buckets=SECONDS,
        )
        self.in_flight = Gauge(
            "trellis_requests_in_flight", "Requests under way.", registry=registry
        )
        self._answers = Counter(
            "trellis_answers",
            "Answers, by mode and by how far they are supported.",
            ("workspace", "mode", "fallback"),
            registry=registry,
        )
        self._tokens = Counter(
            "trellis_tokens",
            "Tokens of models for questions.",
            ("workspace", "direction"),
            registry=registry,
        )
        self._cost = Counter(
            "trellis_cost_usd",
            "US dollars for questions, where prices are known.",
            ("workspace",),
            registry=registry,
        )
        self.generation = Gauge(
            "trellis_generation",
            "The generation that the last answer is from.",
            ("workspace",),
            registry=registry,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is its pattern."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def answer(self, workspace: str, answer: Answer) -> None:
        """Count an answer."""
        self._answers.labels(workspace, answer.trace.mode, answer.fallback).inc()
        self.generation.labels(workspace).set(answer.generation)

    def spent(self, workspace: str, meter: Meter) -> None:
        """Count what a question took, answered or not."""
        for _, _, spent in meter.rows():
            self._tokens.labels(workspace, "in").inc(spent.input_tokens)
            self._tokens.labels(workspace, "out").inc(spent.output_tokens)
            self._cost.labels(workspace).inc(spent.cost_usd or 0.0)
