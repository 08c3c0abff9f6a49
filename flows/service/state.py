"""What the routes of a service work with."""

from dataclasses import dataclass

from fastapi import Request

from flows.service.asking import Questions
from flows.service.metrics import Metrics
from flows.service.runs import IndexRuns
from flows.service.workspaces import Workspaces
from flows.settings import Settings


@dataclass(frozen=True)
class Service:
    """One service, made once by `create_app`. `prefect` is the address of Prefect's pages, None without Prefect."""

    settings: Settings
    workspaces: Workspaces
    questions: Questions
    runs: IndexRuns
    metrics: Metrics
    prefect: str | None = None
    sources: tuple[str, ...] = ()


def service_of(request: Request) -> Service:
    """The service that a request came to: a dependency of routes."""
    service: Service = request.app.state.service
    return service
