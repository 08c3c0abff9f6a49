"""Which plan over tables answers a question? (StructRAG, section 2.4: decompose, where the structure is a table)

Rules read the usual wordings. A model is asked where they are unsure, or where they see no plan in a question that was
routed to tables; for any other question a call would be paid for nothing.
"""

from collections.abc import Mapping

import dspy

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Step
from prompts.language.asked import Ask
from prompts.language.table_bands import figures_in
from prompts.language.table_plan import TablePlan
from prompts.language.table_question import plan_of
from prompts.language.words import fold


class PlanOverTables(dspy.Signature):
    """Say what the question asks of a table of figures: the operation (none where no operation fits), and the
    attribute, names and ranges exactly as the question writes them."""

    question: str = dspy.InputField()
    plan: TablePlan = dspy.OutputField()


class PlanTable(Step):
    """A question → its plan over tables, or None where it asks for none."""

    step = "plan_table"
    role = "decompose"
    task = PlanOverTables

    async def run(self, ask: Ask, for_table: bool = False) -> TablePlan | None:
        """`for_table`: the router has chosen a table, so that there may be a plan which the rules do not see."""
        by_rule = plan_of(ask.text)
        if self.is_offline or (by_rule.sure if by_rule else not for_table):
            return by_rule.plan if by_rule else None
        plan: TablePlan = (await self.acall(question=ask.text)).plan
        return None if plan.operation == "none" or not plan.attribute.strip() else plan

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """Names and ranges are the question's own: what a model adds to them would be answered as if it were asked."""
        plan, question = outputs["plan"], str(inputs["question"])
        if not isinstance(plan, TablePlan):
            return
        strange = [thing for thing in plan.things if fold(thing) not in fold(question)]
        if strange:
            raise NotAsAsked(f"things: {strange[0]!r} does not stand in the question")
        known = {figure.number for figure in figures_in(question)} | {0.0}
        ends = {end for band in plan.bands for end in (band.low, band.high) if end is not None}
        if ends - known:
            raise NotAsAsked(f"bands: {min(ends - known):g} is no figure of the question")
