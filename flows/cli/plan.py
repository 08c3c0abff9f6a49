"""`trellis index --dry-run`: what would the run do, and what would it cost?"""

from flows.cli.screen import Screen
from flows.usage import cost_of
from storage.records import StepUsage
from storage.spending import Budget, Forecast, StepForecast

SHOWN_SKIPPED = 10
BASES = {"history": "as its model wrote before", "rule": "by rule"}


def show_plan(found: Forecast, budget: Budget, screen: Screen) -> None:
    """The forecast for people."""
    changes = ", ".join(f"{number} {name}" for name, number in found.documents.model_dump().items() if number)
    screen.line("Forecast: nothing was called or written", style="bold")
    reading = f"{found.chunks} chunks, {found.chunks_to_extract} to extract"
    screen.facts([("documents", changes or "none"), ("text", reading), ("models", used(found))], indent=2)
    for step in found.steps:
        screen.line(f"{step.step} ({step.model}): {used(step)}; output {BASES[step.basis]}", indent=4)
    for skipped in found.skipped[:SHOWN_SKIPPED]:
        screen.line(f"  skipped {skipped.path}: {skipped.reason}", style="yellow")
    if len(found.skipped) > SHOWN_SKIPPED:
        screen.line(f"  and {len(found.skipped) - SHOWN_SKIPPED} more skipped (--json lists all)", style="yellow")
    tokens = found.input_tokens + found.output_tokens
    if budget.tokens is not None and tokens > budget.tokens:
        screen.line(f"  {tokens:,} tokens are more than the budget of {budget.tokens:,}", style="yellow")
    if budget.usd is not None and found.cost_usd is not None and found.cost_usd > budget.usd:
        screen.line(f"  ${found.cost_usd:.2f} is more than the budget of ${budget.usd:.2f}", style="yellow")


def used(some: Forecast | StepForecast) -> str:
    """Calls, tokens and cost in words."""
    if not some.calls:
        return "no calls" + (f", {some.cached_calls:,} answers from the cache" if some.cached_calls else "")
    cached = f" and {some.cached_calls:,} from the cache" if some.cached_calls else ""
    cost = cost_of(StepUsage(cost_usd=some.cost_usd))
    return f"about {some.calls:,} calls{cached}, {some.input_tokens:,} tokens in, {some.output_tokens:,} out, {cost}"
