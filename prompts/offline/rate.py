"""Ratings of reports by rules: what lies near to the question in a report's community, and its own words."""

from prompts.text.evidence import Evidence
from prompts.text.gist import Gist

# What the report's own words count beside what lies near to the question in its community.
OWN_WORDS = 0.35


def rate_offline(report: Evidence, gist: Gist) -> float:
    """How much a report would help, 0-1; its `prior` is the share of what lies near to the question that stands in its
    community."""
    return (1 - OWN_WORDS) * report.prior + OWN_WORDS * gist.covered(f"{report.title} {report.text}")
