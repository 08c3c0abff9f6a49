"""What the models cost, in words and as a table. A cost that is not known is said to be unknown, never zero."""

from collections.abc import Iterable, Mapping

from storage.run_records import StepUsage, Usage, UsageRow


def in_short(used: StepUsage) -> str:
    """One line: calls, tokens, cost; empty where no model was used."""
    if not used.calls and not used.cached_calls:
        return ""
    cached = f" and {used.cached_calls:,} from the cache" if used.cached_calls else ""
    return (
        f"{used.calls:,} model {'call' if used.calls == 1 else 'calls'}{cached}, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out, {cost_of(used)}"
    )


def cost_of(used: StepUsage) -> str:
    """US dollars, to a hundredth of a cent where it is little."""
    if used.cost_usd is None:
        return "cost unknown"
    return f"${used.cost_usd:.2f}" if used.cost_usd >= 1 or used.cost_usd == 0 else f"${used.cost_usd:.4f}"


def rows_of(usage: Usage, models: Mapping[str, str]) -> list[UsageRow]:
    """The steps of a usage with the model of each step's role."""
    return [
        UsageRow(step=step, model=models.get(step, ""), **dict(used)) for step, used in sorted(usage.by_step.items())
    ]


def ledger(rows: Iterable[UsageRow]) -> str:
    """A Markdown table by step and model; says so where no model was used."""
    lines = [
        f"| {row.step} | {row.model.replace('|', ' ')} | {row.calls} | {row.cached_calls} | {row.input_tokens} "
        f"| {row.output_tokens} | {cost_of(row)} | {row.seconds:.1f} |"
        for row in rows
    ]
    if not lines:
        return "## Models\n\nNone was used: every step ran offline."
    head = (
        "| step | model | calls | cached | tokens in | tokens out | cost | seconds |\n|---|---|--:|--:|--:|--:|--:|--:|"
    )
    return "## Models\n\n" + "\n".join([head, *lines])
