"""The metrics of the service for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from prompts.engine.spending import Meter
from storage.answer_records import Answer

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"trellis_{name}", meaning, labels, registry=registry)

        self._requests = counter(
            "requests", "Requests that were answered.", "method", "route", "status"
        )
        self._answers = counter(
            "answers",
            "Answers, by mode and by how far they are supported.",
            "workspace",
            "mode",
            "fallback",
        )
        self._tokens = counter(
            "tokens", "Tokens of models for questions.", "workspace", "direction"
        )
        self._cost = counter(
            "cost_usd", "US dollars for questions, where prices are known.", "workspace"
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
        self.generation = Gauge(
            "trellis_generation",
            "The generation that the last answer is from.",
            ("workspace",),
            registry=registry,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is the pattern of its path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def answer(self, workspace: str, answer: Answer) -> None:
        self._answers.labels(workspace, answer.trace.mode, answer.fallback).inc()
        self.generation.labels(workspace).set(answer.generation)

    def spent(self, workspace: str, meter: Meter) -> None:
        """Count the tokens and the cost of a question, even if it failed."""
        for _, _, spent in meter.rows():
            self._tokens.labels(workspace, "in").inc(spent.input_tokens)
            self._tokens.labels(workspace, "out").inc(spent.output_tokens)
            self._cost.labels(workspace).inc(spent.cost_usd or 0.0)
