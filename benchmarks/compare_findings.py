"""Which of the statements about the modes do the figures bear out, and which not?"""

from collections.abc import Iterator

from benchmarks.compare_records import Comparison, Figures, Finding, SetFigures, Verdict
from benchmarks.compare_sets import CLAIMS

NEAR = 0.02
SAVED = 0.5
ALIKE_COST = 1.1
BASELINES = ("naive", "hyde", "rq")
# LightRAG's paper on what GraphRAG reads for a question about the whole (arXiv 2410.05779, analysis of costs).
GRAPHRAG_REPORTS, GRAPHRAG_REPORT_TOKENS = 610, 1_000


def findings(found: Comparison) -> list[Finding]:
    """Every statement that the sets can speak to."""
    stated: list[Finding] = []
    for one in found.sets:
        stated += [*_near_best(one), *_above_baselines(one), *_cost_of_auto(one), *_levels(one), *_whole(one)]
    return stated


def _near_best(found: SetFigures) -> Iterator[Finding]:
    ours, best = found.value("auto"), found.best(besides=["auto"])
    if ours is None or best is None:
        return
    name, value = best
    yield Finding(
        statement=f"{found.name}: auto is at least the best single mode less {NEAR:.2f}",
        verdict=_verdict(ours >= value - NEAR - 1e-9),
        figures=f"{found.main.name}: auto {ours:.3f}, {name} {value:.3f} ({ours - value:+.3f})",
    )


def _above_baselines(found: SetFigures) -> Iterator[Finding]:
    ours = found.value("auto")
    if not found.multihop or ours is None:
        return
    for name in BASELINES:
        value = found.value(name)
        if found.of(name) is None:
            continue
        yield Finding(
            statement=f"{found.name} (multi-hop): auto is above {name}",
            verdict="not measured" if value is None else _verdict(ours > value),
            figures=f"{name} needs a model, so it has no quality here"
            if value is None
            else f"{found.main.name}: auto {ours:.3f}, {name} {value:.3f}",
        )


def _cost_of_auto(found: SetFigures) -> Iterator[Finding]:
    """Beside the way that answers best, and the cheapest that is within reach of it."""
    ours, best = found.of("auto"), found.best(besides=["auto"])
    if ours is None or ours.served is None or best is None:
        return
    within = [
        one for one in found.ways
        if one.way.name != "auto" and one.served is not None and found.is_whole(one)
        and one.quality.get(found.main.name, -1.0) >= best[1] - NEAR - 1e-9
    ]  # fmt: skip
    if not within:
        return
    cheapest = min(within, key=lambda one: one.served.tokens if one.served else 0.0)
    allowed = ALIKE_COST * (cheapest.served.tokens if cheapest.served else 0.0)
    yield Finding(
        statement=f"{found.name}: auto takes at most {ALIKE_COST - 1:.0%} more tokens than the cheapest way that is "
        "within reach of the best",
        verdict=_verdict(ours.served.tokens <= allowed),
        figures=f"auto: {_cost(ours)}; {cheapest.way.name}: {_cost(cheapest)}",
    )


def _levels(found: SetFigures) -> Iterator[Finding]:
    if not any(measure.share for measure in found.measures) or found.main.name == "covered":
        return
    for without, name in (("−High", "low"), ("−Low", "high")):
        both = [(measure.name, found.value("hybrid", measure.name), found.value(name, measure.name))
                for measure in found.measures]  # fmt: skip
        known = [(measure, whole, part) for measure, whole, part in both if whole is not None and part is not None]
        if found.standing:
            known.append(("context", found.standing["hybrid"], found.standing[without.replace("−", "-")]))
        if known:
            yield Finding(
                statement=f"{found.name}: {without} (mode {name}) is below hybrid",
                # Where both answer nothing the set cannot show it.
                verdict=_verdict(all(part < whole for _, whole, part in known))
                if any(whole > 0 for _, whole, _ in known)
                else "not measured",
                figures="; ".join(
                    f"{measure}: hybrid {whole:.3f}, {name} {part:.3f}" for measure, whole, part in known
                ),
            )


def _whole(found: SetFigures) -> Iterator[Finding]:
    """Questions about the whole collection: coverage, and what it costs against reading a whole level."""
    chosen = found.of("global")
    if found.main.name != "covered" or chosen is None:
        return
    covered, claims, documents = (chosen.quality.get(name, 0.0) for name in ("covered", "claims", "documents"))
    yield Finding(
        statement=f"Global questions get {CLAIMS} distinct claims or more, each supported, from {CLAIMS} documents",
        verdict=_verdict(covered == 1.0),
        figures=f"mode global: {covered:.0%} of {found.questions} questions; on average {claims:.1f} claims from "
        f"{documents:.1f} documents. Offline a claim is a quote, hence supported; whether it answers is not judged",
    )
    levels = [one for one in found.ways if one.way.mode == "global" and one.way.level is not None]
    if chosen.served is None or not levels:
        yield Finding(
            statement="Calls and tokens of global against reading a whole level", verdict="not measured",
            figures="run with --server and the mode global",
        )  # fmt: skip
        return
    yield from _saved(chosen, levels)
    yield _graphrag(chosen, levels)


def _saved(chosen: Figures, levels: list[Figures]) -> Iterator[Finding]:
    for level in levels:
        if level.served is None or chosen.served is None or not level.served.tokens:
            continue
        share = 1 - chosen.served.tokens / level.served.tokens
        yield Finding(
            statement=f"Dynamic selection saves {SAVED:.0%} of the tokens of reading all of level {level.way.level}",
            verdict=_verdict(share >= SAVED),
            figures=f"{share:.0%}: {_cost(chosen)}{_rating(chosen)}; level {level.way.level}: {_cost(level)}",
        )


def _graphrag(chosen: Figures, levels: list[Figures]) -> Finding:
    """At equal coverage: the cheapest level that covers as much as the selection."""
    covered = chosen.quality.get("covered", 0.0)
    equal = [one for one in levels if one.quality.get("covered", 0.0) >= covered and one.served is not None]
    cheapest = min(equal, key=lambda one: one.served.tokens if one.served else 0.0, default=None)
    published = f"GraphRAG as published: {GRAPHRAG_REPORTS} reports × {GRAPHRAG_REPORT_TOKENS:,} tokens a question"
    if cheapest is None or cheapest.served is None or chosen.served is None:
        return Finding(
            statement="Global needs fewer calls and tokens than GraphRAG's way, at equal coverage",
            verdict="not measured", figures=f"no level covers as much as the selection. {published}",
        )  # fmt: skip
    fewer = chosen.served.tokens < cheapest.served.tokens and chosen.served.calls <= cheapest.served.calls
    return Finding(
        statement="Global needs fewer calls and tokens than GraphRAG's way (a whole level), at equal coverage",
        verdict=_verdict(fewer),
        figures=f"selection: {_cost(chosen)}, covers {covered:.0%}; level {cheapest.way.level}: {_cost(cheapest)}, "
        f"covers {cheapest.quality.get('covered', 0.0):.0%}. {published}",
    )


def _cost(one: Figures) -> str:
    if one.served is None:
        return "not counted"
    return f"{one.served.calls:.1f} calls, {one.served.tokens:,.0f} tokens"


def _rating(one: Figures) -> str:
    spent = one.served.steps.get("rate", 0.0) if one.served else 0.0
    return f" ({spent:,.0f} of them to rate reports)" if spent else ""


def _verdict(holds: bool) -> Verdict:
    return "holds" if holds else "does not hold"
